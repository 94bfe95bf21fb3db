"""The announcements and transactions of one peer, and its rests between connections."""

import threading
import time
from collections.abc import Mapping, Sequence

from btcpay.parts.peers.connection import Connection
from btcpay.values.errors import FetchError

NOTED_FOR_S = 900.0
# Ids of one peer; mainnet has a third of that in 15 minutes.
MAX_NOTED = 20_000
# Bytes of one peer in a minute; mainnet announces and sends half a million.
MAX_MINUTELY_BYTES = 20_000_000
# A peer whose connection ended rests; twice as long each time, unless the connection lasted.
FIRST_REST_S = 5.0
LONGEST_REST_S = 600.0


def is_outnumbered(
    announcements: Sequence[Mapping[bytes, float]], old: bytes, new: bytes
) -> bool:
    """True if more peers announce the transaction `new` than `old`. Pure.

    `announcements`: for each peer, when it last announced each of the two; the later one counts. If
    no peer announced the old one of late, nobody knows how many did. Then more than half must
    announce the new one.
    """
    latest = [max(times, key=times.__getitem__) for times in announcements if times]
    if any(old in times for times in announcements):
        rivals = latest.count(old)
    else:
        rivals = len(announcements) // 2
    return latest.count(new) > rivals


class AnnouncingPeer:
    """One peer. `announced_s`: by txid, oldest first, when it last announced it.

    Times are those of `time.monotonic()`. `has_sent`: by txid, False once the peer was asked for
    the transaction, True once it has sent it. `stop`: the peer is listened to no more.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.announced_s: dict[bytes, float] = {}
        self.has_sent: dict[bytes, bool] = {}
        self.stop = threading.Event()
        self.connection: Connection | None = None
        self.rests_until_s = 0.0
        self._rest_s = 0.0
        self._minute = 0
        self._minutely_bytes = 0

    def note(self, announced: Sequence[bytes], now_s: float) -> None:
        """Notes announced ids, and forgets old ones."""
        for txid in announced:
            self.announced_s.pop(txid, None)
            self.announced_s[txid] = now_s
        while self.announced_s:
            oldest = next(iter(self.announced_s))
            is_old = self.announced_s[oldest] < now_s - NOTED_FOR_S
            if not is_old and len(self.announced_s) <= MAX_NOTED:
                return
            del self.announced_s[oldest]
            self.has_sent.pop(oldest, None)

    def count_bytes(self, size: int) -> None:
        """Counts what it sends. Raises FetchError if that is much more than there can be."""
        minute = int(time.monotonic() / 60)
        if minute != self._minute:
            self._minute = minute
            self._minutely_bytes = 0
        self._minutely_bytes += size
        if self._minutely_bytes > MAX_MINUTELY_BYTES:
            raise FetchError("sends much more than there can be")

    def rest(self, lasted_s: float) -> None:
        """Lets it rest after a connection that lasted so long."""
        if lasted_s > LONGEST_REST_S:
            self._rest_s = 0.0
        rest_s = max(self._rest_s * 2, FIRST_REST_S)
        self._rest_s = min(rest_s, LONGEST_REST_S)
        self.rests_until_s = time.monotonic() + self._rest_s
