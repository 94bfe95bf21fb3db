"""The state of one peer that announces transactions, and its back-off."""

import threading
import time
from collections.abc import Mapping, Sequence

from btcpay.parts.peers.connection import Connection
from btcpay.values.errors import FetchError

ANNOUNCED_FOR_S = 900.0
# The maximum number of ids stored for one peer. Mainnet has a third of that in 15
# minutes.
MAX_ANNOUNCED = 20_000
# The maximum number of bytes read from one peer in a minute. Mainnet's announcements
# and transactions need half a million.
MAX_MINUTELY_BYTES = 20_000_000
# The back-off after the end of a connection. It doubles each time, and starts again
# after a connection that lasted longer than the maximum.
FIRST_REST_S = 5.0
LONGEST_REST_S = 600.0


def is_outnumbered(
    announcements: Sequence[Mapping[bytes, float]],
    old: bytes,
    new: bytes,
) -> bool:
    """True if more peers announce the transaction `new` than its rival `old`. Pure.

    `announcements` has one entry per peer: the time of its last announcement of each of
    the two, by txid. Each peer counts once, for the transaction that it announced last.
    If no peer has announced `old` recently, more than half of the peers must announce
    `new`.
    """
    latest = [max(times, key=times.__getitem__) for times in announcements if times]
    if any(old in times for times in announcements):
        rivals = latest.count(old)
    else:
        rivals = len(announcements) // 2
    return latest.count(new) > rivals


class AnnouncingPeer:
    """One peer that announces transactions.

    `announced_s` has, by txid and oldest first, the time of the last announcement in
    seconds of `time.monotonic()`. `has_sent` has, by txid, False after the transaction
    was requested and True after it was received. `stop` is set when the peer is no
    longer used. `rests_until_s` is the end of its back-off.
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
        """Stores announced txids with the time `now_s`, and deletes old ones.

        An id is old ANNOUNCED_FOR_S seconds after its announcement. If there are more
        than MAX_ANNOUNCED, the oldest are deleted as well.
        """
        for txid in announced:
            self.announced_s.pop(txid, None)  # so that it comes last in the order
            self.announced_s[txid] = now_s
        while self.announced_s:
            oldest = next(iter(self.announced_s))
            is_old = self.announced_s[oldest] < now_s - ANNOUNCED_FOR_S
            if not is_old and len(self.announced_s) <= MAX_ANNOUNCED:
                return
            del self.announced_s[oldest]
            self.has_sent.pop(oldest, None)

    def count_bytes(self, size: int) -> None:
        """Counts received bytes.

        Raises FetchError above MAX_MINUTELY_BYTES in a minute.
        """
        minute = int(time.monotonic() / 60)
        if minute != self._minute:
            self._minute = minute
            self._minutely_bytes = 0
        self._minutely_bytes += size
        if self._minutely_bytes > MAX_MINUTELY_BYTES:
            raise FetchError("sends much more than there can be")

    def rest(self, lasted_s: float) -> None:
        """Starts the back-off after a connection that lasted `lasted_s` seconds."""
        if lasted_s > LONGEST_REST_S:
            self._rest_s = 0.0
        rest_s = max(self._rest_s * 2, FIRST_REST_S)
        self._rest_s = min(rest_s, LONGEST_REST_S)
        self.rests_until_s = time.monotonic() + self._rest_s
