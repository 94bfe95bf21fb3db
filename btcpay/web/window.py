"""What is counted in a rolling window, and the window as a request finds it."""

import math
from datetime import datetime
from typing import NamedTuple

from btcpay.values.errors import RateLimited


class Bucket(NamedTuple):
    """Whoever has a key in it may make `limit` requests in any `period_s` seconds."""

    name: str
    limit: int
    period_s: int


class Window(NamedTuple):
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
