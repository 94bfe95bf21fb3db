"""One peer that announces transactions: its announcements and its waiting times."""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence

from btcpay.parts.peers.connection import Connection
from btcpay.values.errors import FetchError

ANNOUNCED_FOR_S = 900.0
# The maximum number of txids stored for one peer. On mainnet, a third of this number is
# announced in 15 minutes.
MAX_ANNOUNCED = 20_000
# The maximum number of bytes received from one peer in a minute. Mainnet's announcements
# and transactions have half a million bytes.
MAX_MINUTELY_BYTES = 20_000_000
# The waiting time after the end of a connection. It doubles each time. It starts again
# with the first value after a connection that lasted longer than the maximum.
FIRST_REST_S = 5.0
LONGEST_REST_S = 600.0


def is_outnumbered(
    announcements: Sequence[Mapping[bytes, float]],
    old: bytes,
    new: bytes,
) -> bool:
    """True if more peers announce `new` than `old`, which `new` replaces.

    `new` and `old` are txids. `announcements` has a dict for each peer: the time at
    which the peer last announced each of the two, by txid. A peer counts once, for the
    transaction that it announced last. If no peer has announced `old` recently, `new` must
    be announced by more than half of all peers.
    """
    latest = [_latest(times) for times in announcements if times]
    if any(old in times for times in announcements):
        most_rivals = latest.count(old)
    else:
        most_rivals = len(announcements) // 2
    return latest.count(new) > most_rivals


def _latest(times: Mapping[bytes, float]) -> bytes:
    """Returns the txid with the latest time. `times` must not be empty."""
    return max(times, key=lambda txid: times[txid])


class AnnouncingPeer:
    """One peer that announces transactions.

    - `place`: its host and port (host:port).
    - `announced_s`: the time of the last announcement of each transaction, by its txid,
      in seconds of `time.monotonic()`. The oldest comes first.
    - `has_sent`: whether the peer has sent each requested transaction, by txid.
    - `stop`: is set when the peer is no longer used.
    - `connection`: the present connection; None while there is none.
    - `rests_until_s`: the time of `time.monotonic()` until which no new connection to the
      peer is made.
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

        A txid is deleted ANNOUNCED_FOR_S seconds after its last announcement. If more
        than MAX_ANNOUNCED txids remain, the oldest are deleted as well.
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

    def times_of(self, txids: Iterable[bytes]) -> dict[bytes, float]:
        """Returns the times of the last announcements of these txids, without unknown ones."""
        times = self.announced_s
        return {txid: times[txid] for txid in txids if txid in times}

    def count_bytes(self, size: int) -> None:
        """Counts received bytes.

        Raises FetchError if more than MAX_MINUTELY_BYTES were received in this minute.
        """
        minute = int(time.monotonic() / 60)
        if minute != self._minute:
            self._minute = minute
            self._minutely_bytes = 0
        self._minutely_bytes += size
        if self._minutely_bytes > MAX_MINUTELY_BYTES:
            raise FetchError("sends much more than there can be")

    def rest(self, lasted_s: float) -> None:
        """Starts the waiting time after a connection that lasted `lasted_s` seconds."""
        if lasted_s > LONGEST_REST_S:
            self._rest_s = 0.0
        rest_s = max(self._rest_s * 2, FIRST_REST_S)
        self._rest_s = min(rest_s, LONGEST_REST_S)
        self.rests_until_s = time.monotonic() + self._rest_s
