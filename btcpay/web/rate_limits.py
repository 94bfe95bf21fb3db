"""Rate limits: how many requests a client may send in a period.

A client is identified by a key, such as the id of its API key or its IP address. The
windows that count its requests are in the memory of the process (rate_windows.py), or in
Redis, which several processes share (rate_limits_redis.py).
"""

import time
from collections.abc import Callable
from importlib.util import find_spec
from pkgutil import resolve_name

from btcpay.web.rate_windows import Bucket, MemoryWindows, Window

READS = Bucket("read", 120, period_s=60)
WRITES = Bucket("write", 30, period_s=60)
# For the plug-ins of shop systems. A paid order takes one write and three reads. pretix
# polls 300 invoices in a row.
SHOP_READS = Bucket("shop-read", 600, period_s=60)
SHOP_WRITES = Bucket("shop-write", 120, period_s=60)
FAILED_AUTH = Bucket("auth", 20, period_s=60, is_strict=True)
# Wrong passwords of all visitors together, who may have many addresses. A password that
# a person has chosen has few enough characters to be guessed.
FAILED_PASSWORDS = Bucket("password", 60, period_s=60)
# Wrong passwords of a browser that has logged in with the right one before.
KNOWN_BROWSERS = Bucket("known-browser", 20, period_s=60)
# Ten a second: enough for twenty visitors with one address, whose pages poll every two
# seconds.
VISITS = Bucket("visit", 600, period_s=60)
# For the page of one invoice: enough for four open tabs. Many requests for one invoice
# thus do not block others.
LOOKS = Bucket("look", 120, period_s=60)
# The class is imported only if it is needed, since the Redis driver takes 200 ms and 6 MB.
_SHARED_WINDOWS = "btcpay.web.rate_limits_redis"


def link_invoices(per_hour: int) -> Bucket:
    """Returns the limit on invoices that one visitor creates through payment links."""
    return Bucket("link", per_hour, period_s=3600)


def missing_driver(store: str) -> str:
    """Returns an error message if the Redis driver is necessary but missing, else "".

    `store` is the setting `rate_limit_store`: `memory://`, or a URL of Redis.
    """
    if store == "memory://" or find_spec("redis"):
        return ""
    return (
        "BLOCKTILL_RATE_LIMIT_STORE needs a driver for Redis: pip install --require-hashes"
        " -r requirements/redis.txt, in a clone of the sources"
    )


class Limiter:
    """Counts requests, and says whether the rate limits allow them.

    `store` is `memory://` for one process, or a `redis://` URL for several. While Redis
    is unavailable, each process counts in its own memory, and allows the full limit.
    `unix_s` returns the Unix time in seconds. `monotonic_s` returns the time of a
    monotonic clock in seconds.
    """

    def __init__(
        self,
        store: str,
        unix_s: Callable[[], float],
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._memory = MemoryWindows(unix_s)
        self._shared = None
        if store != "memory://":
            shared_windows = resolve_name(f"{_SHARED_WINDOWS}:SharedWindows")
            self._shared = shared_windows(store, monotonic_s)

    def hit(
        self,
        bucket: Bucket,
        key: str,
        is_counted: bool = True,
        mark: str = "",
    ) -> Window:
        """Counts a request, and returns the key's window.

        A request that exceeds the limit is not counted, and the window's `allowed` is
        False. If `is_counted` is False, the request is only compared with the limit.
        Several requests of a key with the same `mark`, unless it is empty, count as one
        request.
        """
        if self._shared is not None:
            window: Window | None = self._shared.hit(bucket, key, is_counted, mark)
            if window is not None:
                return window
        return self._memory.hit(bucket, key, is_counted, mark)

    def peek(self, bucket: Bucket, key: str) -> Window:
        """Returns the key's window without counting a request."""
        return self.hit(bucket, key, is_counted=False)

    def is_complete(self) -> bool:
        """True if all processes share their counts; False while Redis is unavailable."""
        return self._shared is None or self._shared.is_reachable()
