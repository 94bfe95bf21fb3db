"""Holds blocks of ours against one explorer's chain; what contradicts them has to be proven."""

from collections.abc import Sequence
from dataclasses import dataclass

from btcpay.explorers.calls import PROVE_TIP
from btcpay.explorers.esplora import Esplora
from btcpay.explorers.last_compared import Compared
from btcpay.explorers.quota import TooFewCalls
from btcpay.http_client import FetchError
from btcpay.spv.verify import prove_next
from storage.database import Row

MAX_BLOCKS_BEHIND = 2  # blocks come in bunches; an explorer three behind is stuck


@dataclass(frozen=True)
class Comparison:
    """An explorer's tip, whether its height was proven, and our blocks that its chain has not.

    `compared` are all blocks that were held against it; None when none were.
    """

    tip_height: int
    explorer: str
    is_proven: bool
    lost: Sequence[Row] = ()
    compared: Compared | None = None


@dataclass(frozen=True)
class Ours:
    """What a chain is held against: blocks of recent payments, and what is known of their chain.

    `high_height` is the highest block that was ever proven to us, a payment's or a tip. A lower
    chain is no evidence, and an explorer that is more than two blocks below it is stuck.
    """

    blocks: list[Row]
    high_height: int
    known: Compared

    def are_known_at(self, tip: int) -> bool:
        """Whether all of them were compared with a tip of this height."""
        hashes = {block["block_hash"] for block in self.blocks}
        return tip == self.known.tip_height and hashes <= self.known.blocks


def compare(chain: Esplora, ours: Ours, is_only: bool, thrifty: bool) -> Comparison:
    """Our blocks against this explorer's chain, as far as its tip, and the calls left, allow.

    One call when there is nothing to compare and no other explorer (`is_only`), or when `thrifty`
    and the tip's height is the same: then another tip of the same height is only noticed with the
    block after it. Otherwise two while the tip is the same, FOLLOW for a block on top of it, and
    for any other tip PROVE_TIP when it is higher than any before, and one for each distinct block.
    """
    tip = chain.tip()
    if tip < ours.high_height - MAX_BLOCKS_BEHIND:
        raise FetchError(f"is {ours.high_height - tip} blocks behind what was proven to us")
    unproven = Comparison(tip, chain.host, is_proven=tip <= ours.high_height)
    has_nothing = is_only and not ours.blocks
    is_enough = has_nothing or (thrifty and ours.are_known_at(tip))
    if tip < ours.high_height or (tip == ours.high_height and is_enough):
        return unproven
    try:
        with chain.set_aside(PROVE_TIP + len(ours.blocks)):
            return _compare(chain, tip, ours)
    except TooFewCalls:  # another run will compare; the addresses are looked at all the same
        return unproven


def _compare(chain: Esplora, tip: int, ours: Ours) -> Comparison:
    """The comparison, once the tip is proven to be of its height.

    What was in the chain of a tip is in the chain of the block on top of it.
    """
    blocks, known, hash = ours.blocks, ours.known, chain.block_hash(tip)
    is_same = (tip, hash) == (known.tip_height, known.tip_hash)
    if is_same or _is_next(chain, tip, hash, known):
        unseen = [block for block in blocks if block["block_hash"] not in known.blocks]
    else:
        unseen = blocks
        if tip > ours.high_height:
            chain.prove_block(hash, tip)
    hashes = {tip: hash}
    for height in {block["block_height"] for block in unseen} - {tip}:
        hashes[height] = chain.block_hash(height)
    lost = [block for block in unseen if hashes[block["block_height"]] != block["block_hash"]]
    for height in {block["block_height"] for block in lost}:
        chain.prove_block(hashes[height], height)
    compared = Compared(tip, hash, frozenset(block["block_hash"] for block in blocks))
    return Comparison(tip, chain.host, is_proven=True, lost=lost, compared=compared)


def _is_next(chain: Esplora, tip: int, hash: str, known: Compared) -> bool:
    if tip != known.tip_height + 1:
        return False
    bits = chain.network.max_target_bits
    return prove_next(chain.header(hash), hash, known.tip_hash, bits)
