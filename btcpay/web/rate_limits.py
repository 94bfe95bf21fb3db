"""Rolling windows: what a key and an address may ask in 60 seconds (specification, section 8).

The moving window of the `limits` library is exact: it keeps the time of every request.
"""

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.strategies import MovingWindowRateLimiter

from btcpay.errors import RateLimited
from btcpay.web.memory_windows import OwnWindows
from btcpay.web.redis_windows import SharedWindows, StoreAway

READS = RateLimitItemPerMinute(120, namespace="read")
WRITES = RateLimitItemPerMinute(30, namespace="write")
FAILED_AUTH = RateLimitItemPerMinute(20, namespace="auth")
# Ten a second: twenty people behind one address, whose pages ask every two seconds.
VISITS = RateLimitItemPerMinute(600, namespace="visit")
# It is better to refuse a stranger's wrong key than to let somebody try again too soon.
KEPT = {FAILED_AUTH.namespace}


def link_invoices(per_hour: int) -> RateLimitItem:
    """How many invoices one visitor may make through payment links."""
    return RateLimitItemPerHour(per_hour, namespace="link")


@dataclass(frozen=True)
class Window:
    """A window after a request; at `resets_s` (unix time) its oldest request leaves it."""

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

    def require_allowed(self, now: datetime) -> None:
        """Raises RateLimited when the request was one too many."""
        if not self.allowed:
            raise RateLimited(self.retry_after_s(now.timestamp()))


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
        self._own = MovingWindowRateLimiter(OwnWindows(unix_s, KEPT))
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
    return Window(item.amount, max(0, remaining) if allowed else 0, reset_s, allowed)


def _look(windows: MovingWindowRateLimiter, item: RateLimitItem, identifier: str) -> Window:
    reset_s, remaining = windows.get_window_stats(item, identifier)
    return Window(item.amount, max(0, remaining), reset_s, remaining > 0)
