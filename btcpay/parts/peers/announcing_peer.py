"""The ear at one peer: the ids that it announced, the transactions that it sent, and its rests."""

import threading
import time
from collections.abc import Mapping, Sequence

from btcpay.parts.peers.connection import Connection
from btcpay.values.errors import FetchError

NOTED_FOR_S = 900.0
MOST_KNOWN = 20_000  # ids of each peer; mainnet has a third of that in 15 minutes
MOST_MINUTELY_BYTES = (
    20_000_000  # of each peer; mainnet announces and sends half a million
)
# A peer whose connection ended rests; twice as long each time, unless it lasted.
FIRST_REST_S = 5.0
LONGEST_REST_S = 600.0


def is_outnumbered(
    words: Sequence[Mapping[bytes, float]], old: bytes, new: bytes
) -> bool:
    """True if more peers announce the transaction `new` than `old`. Pure.

    `words`: for each peer, when it last announced each of the two; its last word counts. If none
    announced the old one of late, nobody knows how many did: then more than half must say the new.
    """
    last = [max(word, key=word.__getitem__) for word in words if word]
    needed = last.count(old) if any(old in word for word in words) else len(words) // 2
    return last.count(new) > needed


class AnnouncingPeer:
    """One peer. `said`: by txid, oldest first, when it last announced it, in `time.monotonic()`.

    `has`: by txid, True once the peer has sent what it was asked for.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.said: dict[bytes, float] = {}
        self.has: dict[bytes, bool] = {}
        self.off = threading.Event()
        self.connection: Connection | None = None
        self.rest_s = self.rests_until_s = 0.0
        self._minute = 0
        self._minutely_bytes = 0

    def note(self, announced: Sequence[bytes], now_s: float) -> None:
        for txid in announced:
            self.said.pop(txid, None)
            self.said[txid] = now_s
        while (oldest := next(iter(self.said), None)) and (
            len(self.said) > MOST_KNOWN or self.said[oldest] < now_s - NOTED_FOR_S
        ):
            del self.said[oldest]
            self.has.pop(oldest, None)

    def count(self, size: int) -> None:
        minute = int(time.monotonic() / 60)
        if minute != self._minute:
            self._minute = minute
            self._minutely_bytes = 0
        self._minutely_bytes += size
        if self._minutely_bytes > MOST_MINUTELY_BYTES:
            raise FetchError("sends much more than there can be")

    def rest(self, lasted_s: float) -> None:
        before_s = 0.0 if lasted_s > LONGEST_REST_S else self.rest_s
        self.rest_s = min(max(before_s * 2, FIRST_REST_S), LONGEST_REST_S)
        self.rests_until_s = time.monotonic() + self.rest_s
