"""Rolling windows: what a key and an address may ask in 60 seconds (specification, section 8).

The moving window of the `limits` library is exact: it keeps the time of every request.
"""

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.storage import MemoryStorage, Storage
from limits.strategies import MovingWindowRateLimiter

from btcpay.shared_windows import SharedWindows, StoreAway

READS = RateLimitItemPerMinute(120, namespace="read")
WRITES = RateLimitItemPerMinute(30, namespace="write")
FAILED_AUTH = RateLimitItemPerMinute(20, namespace="auth")
# Ten a second: a room of twenty people, behind one address, whose pages ask every two seconds.
VISITS = RateLimitItemPerMinute(600, namespace="visit")
SWEEP_EVERY_S = 3600  # the longest window there is


def link_invoices(per_hour: int) -> RateLimitItem:
    """How many invoices one visitor may make through payment links."""
    return RateLimitItemPerHour(per_hour, namespace="link")


@dataclass(frozen=True)
class Window:
    """A bucket after a request; at `resets_s`, unix time, its oldest request leaves it."""

    limit: int
    remaining: int
    resets_s: float
    allowed: bool

    @property
    def reset_s(self) -> int:
        """`resets_s` in whole seconds, rounded up: then one request fits again."""
        return math.ceil(self.resets_s)

    def retry_after_s(self, now_s: float) -> int:
        """Whole seconds until one request fits again, at least 1."""
        return max(1, math.ceil(self.resets_s - now_s))


class ProcessMemory(MemoryStorage):
    """The library's memory storage without its thread.

    That one walks through every bucket every 10 ms and keeps the empty ones for ever: whoever has
    many addresses could slow the service down by being refused from each of them.
    """

    STORAGE_SCHEME = None  # type: ignore[assignment] # `memory://` stays the library's own

    def __init__(self, unix_s: Callable[[], float]) -> None:
        Storage.__init__(self)
        self._unix_s = unix_s
        self._hits_s: dict[str, deque[float]] = {}
        self._lock = threading.Lock()
        self._swept_s = unix_s()

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Counts a request unless `limit` of them came in the last `expiry` seconds."""
        now_s = self._unix_s()
        with self._lock:
            if abs(now_s - self._swept_s) >= SWEEP_EVERY_S:
                self._sweep(now_s)
            hits_s = self._hits_s.setdefault(key, deque())
            _forget(hits_s, now_s, expiry)
            if len(hits_s) + amount > limit:
                return False
            hits_s.extend([now_s] * amount)
            return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """When the oldest request of the window came, and how many there are."""
        now_s = self._unix_s()
        with self._lock:
            hits_s = self._hits_s.get(key, deque())
            _forget(hits_s, now_s, expiry)
            return (hits_s[0] if hits_s else now_s), len(hits_s)

    def _sweep(self, now_s: float) -> None:
        """Drops the buckets that no window reaches back to, so that memory does not grow."""
        self._swept_s = now_s
        for key, hits_s in list(self._hits_s.items()):
            _forget(hits_s, now_s, SWEEP_EVERY_S)
            if not hits_s:
                del self._hits_s[key]


def _forget(hits_s: deque[float], now_s: float, expiry_s: float) -> None:
    """Drops what is older than the window, and what a clock that was set back left ahead."""
    while hits_s and not now_s - expiry_s <= hits_s[0] <= now_s:
        hits_s.popleft()


class Limiter:
    """Counts requests in `store`: memory:// for one process, redis:// for more.

    While a shared store is away each process counts for itself: a client within its limit is never
    refused for that, and one beyond it gets no more than the limit from each process. `unix_s`
    answers unix time in seconds, `monotonic_s` those of a clock that never steps.
    """

    def __init__(
        self,
        store: str,
        unix_s: Callable[[], float],
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._own = MovingWindowRateLimiter(ProcessMemory(unix_s))
        self._shared = None if store == "memory://" else SharedWindows(store, monotonic_s)

    def hit(self, item: RateLimitItem, identifier: str) -> Window:
        """Counts one request, unless the window is full: then it is not `allowed`."""
        return self._ask(lambda windows: _hit(windows, item, identifier))

    def look(self, item: RateLimitItem, identifier: str) -> Window:
        """The window as it is; counts nothing."""
        return self._ask(lambda windows: _look(windows, item, identifier))

    def is_complete(self) -> bool:
        """Whether all requests are counted together; not while a shared store is away."""
        return self._shared is None or self._shared.is_reachable()

    def _ask(self, question: Callable[[MovingWindowRateLimiter], Window]) -> Window:
        if self._shared:
            with contextlib.suppress(StoreAway):
                return self._shared.ask(question)
        return question(self._own)


def _hit(windows: MovingWindowRateLimiter, item: RateLimitItem, identifier: str) -> Window:
    allowed = windows.hit(item, identifier)
    reset_s, remaining = windows.get_window_stats(item, identifier)
    return Window(item.amount, max(0, remaining), reset_s, allowed)


def _look(windows: MovingWindowRateLimiter, item: RateLimitItem, identifier: str) -> Window:
    reset_s, remaining = windows.get_window_stats(item, identifier)
    return Window(item.amount, max(0, remaining), reset_s, remaining > 0)
