"""Rolling windows: what a key and an address may ask in 60 seconds (specification, section 8).

The `limits` library's moving window is exact: it keeps the time of every request in the window.
"""

import math
from dataclasses import dataclass

from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.storage import storage_from_string
from limits.strategies import MovingWindowRateLimiter

READS = RateLimitItemPerMinute(120, namespace="read")
WRITES = RateLimitItemPerMinute(30, namespace="write")
FAILED_AUTH = RateLimitItemPerMinute(20, namespace="auth")


def link_invoices(per_hour: int) -> RateLimitItem:
    """How many invoices one visitor may make through payment links."""
    return RateLimitItemPerHour(per_hour, namespace="link")


@dataclass(frozen=True)
class Window:
    """A bucket after a request: `reset_s` is unix time in whole seconds, rounded up."""

    limit: int
    remaining: int
    reset_s: int
    allowed: bool

    def retry_after_s(self, now_s: float) -> int:
        """Whole seconds until one request fits again, at least 1."""
        return max(1, math.ceil(self.reset_s - now_s))


class Limiter:
    """Counts requests in `store`: memory:// for one process, redis:// for more."""

    def __init__(self, store: str) -> None:
        self._windows = MovingWindowRateLimiter(storage_from_string(store))

    def hit(self, item: RateLimitItem, identifier: str) -> Window:
        """Counts one request, unless the window is full: then it is not `allowed`."""
        allowed = self._windows.hit(item, identifier)
        return self._window(item, identifier, allowed)

    def look(self, item: RateLimitItem, identifier: str) -> Window:
        """The window as it is; counts nothing."""
        window = self._window(item, identifier, True)
        return Window(window.limit, window.remaining, window.reset_s, window.remaining > 0)

    def _window(self, item: RateLimitItem, identifier: str, allowed: bool) -> Window:
        reset_s, remaining = self._windows.get_window_stats(item, identifier)
        return Window(item.amount, max(0, remaining), math.ceil(reset_s), allowed)
