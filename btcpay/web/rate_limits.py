"""Rolling windows: the requests of a key or an address in 60 seconds (specification, section 8)."""

import time
from collections.abc import Callable
from importlib.util import find_spec
from pkgutil import resolve_name

from btcpay.web.rate_limits_memory import Bucket as Bucket
from btcpay.web.rate_limits_memory import MemoryWindows
from btcpay.web.rate_limits_memory import Window as Window

READS = Bucket("read", 120, period_s=60)
WRITES = Bucket("write", 30, period_s=60)
# A paid order costs a shop's plug-in one write and three reads; pretix polls 300 invoices in a row.
SHOP_READS = Bucket("shop-read", 600, period_s=60)
SHOP_WRITES = Bucket("shop-write", 120, period_s=60)
FAILED_AUTH = Bucket("auth", 20, period_s=60)
# Ten a second: twenty people behind one address, whose pages ask every two seconds.
VISITS = Bucket("visit", 600, period_s=60)
# For one invoice, so that endless requests for its page close no other: four open tabs.
LOOKS = Bucket("look", 120, period_s=60)
# Rather refuse a stranger's wrong key than let somebody try again too soon.
KEPT = {FAILED_AUTH}
# Imported by name: its driver takes 200 ms and 6 MB, which a single process does not need.
_SHARED = "btcpay.web.rate_limits_redis"


def link_invoices(per_hour: int) -> Bucket:
    """The window for invoices that one visitor makes through payment links."""
    return Bucket("link", per_hour, period_s=3600)


def missing_driver(store: str) -> str:
    """The advice to install a store's missing driver; empty when none is missing."""
    if store == "memory://" or find_spec("redis"):
        return ""
    return (
        "BTCPAY_RATE_LIMIT_STORE needs a driver for Redis: pip install --require-hashes"
        " -r requirements-redis.txt, in a clone of the sources"
    )


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
        self._own = MemoryWindows(unix_s, KEPT)
        self._shared = None
        if store != "memory://":
            self._shared = resolve_name(f"{_SHARED}:SharedWindows")(store, monotonic_s)

    def hit(self, bucket: Bucket, key: str, counts: bool = True) -> Window:
        """Counts one request, unless the window is full: then it is not `allowed`."""
        shared = self._shared and self._shared.ask(bucket, key, counts)
        return shared or self._own.ask(bucket, key, counts)

    def look(self, bucket: Bucket, key: str) -> Window:
        return self.hit(bucket, key, counts=False)

    def is_complete(self) -> bool:
        """True where all requests are counted together: not while a shared store is away."""
        return self._shared is None or self._shared.is_reachable()
