"""Which blocks of payments were held against which tip: one line in the table `meta`."""

from typing import NamedTuple


class Compared(NamedTuple):
    """A tip, and the hashes of the blocks of ours that were found in its chain."""

    tip_height: int
    tip_hash: str
    blocks: frozenset[str]

    def text(self) -> str:
        """As it is stored: the height, the hash, then the blocks; spaces between."""
        return " ".join([str(self.tip_height), self.tip_hash, *sorted(self.blocks)])


NOTHING_COMPARED = Compared(-1, "", frozenset())


def compared_of(text: str | None) -> Compared:
    """What `text` wrote; nothing was compared where there is none."""
    if not text:
        return NOTHING_COMPARED
    height, tip_hash, *blocks = text.split(" ")
    return Compared(int(height), tip_hash, frozenset(blocks))
