"""Rate limits with rolling windows: requests of a key or an address in a period.

Section 8 of the specification lists the limits. The windows are in the memory of the
process, or in Redis, which several processes share.
"""

import math
import threading
import time
from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import NamedTuple

# The maximum number of windows per bucket: 7 MB, and more than a shop's visitors in an
# hour.
MOST = 20_000

# The times of counted requests by key, in unix seconds. The key that was counted last
# comes last.
Hits = OrderedDict[str, "array[float]"]


class Bucket(NamedTuple):
    """A limit: each key may send `limit` requests in any `period_s` seconds.

    The memory holds a limited number of windows. If it is full, a request of a new key
    replaces the window that was counted least recently; with `is_strict` it is refused.
    """

    name: str
    limit: int
    period_s: int
    is_strict: bool = False


class Window(NamedTuple):
    """The state of a key's window after a request.

    `remaining`: the number of requests that still fit. `resets_s`: the unix time when
    the oldest request leaves the window. `allowed`: True if this request fits.
    """

    limit: int
    remaining: int
    resets_s: float
    allowed: bool

    @property
    def reset_s(self) -> int:
        """The unix time, rounded up to a second, from which one more request fits."""
        return math.ceil(self.resets_s)

    def retry_after_s(self, now_s: float) -> int:
        """Returns the whole seconds until one more request fits, at least 1."""
        return max(1, math.ceil(self.resets_s - now_s))


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
# Wrong passwords of a browser that the right one has let in before.
KNOWN_BROWSERS = Bucket("known-browser", 20, period_s=60)
# Ten a second: enough for twenty visitors with one address, whose pages poll every two
# seconds.
VISITS = Bucket("visit", 600, period_s=60)
# For the page of one invoice: enough for four open tabs. Many requests for one invoice
# thus do not block others.
LOOKS = Bucket("look", 120, period_s=60)
# Imported only if it is needed, since the Redis driver takes 200 ms and 6 MB.
_SHARED_WINDOWS = "btcpay.web.rate_limits_redis"


def link_invoices(per_hour: int) -> Bucket:
    """Returns the bucket for invoices that a visitor creates through payment links."""
    return Bucket("link", per_hour, period_s=3600)


def missing_driver(store: str) -> str:
    """Returns how to install the driver of this store if it is missing, else ""."""
    if store == "memory://" or find_spec("redis"):
        return ""
    return (
        "BLOCKTILL_RATE_LIMIT_STORE needs a driver for Redis: pip install --require-hashes"
        " -r requirements/redis.txt, in a clone of the sources"
    )


class MemoryWindows:
    """Rolling windows in memory, which keep the time of each request. Thread-safe.

    A window is dropped when its period is over. A bucket has at most MOST windows: a
    new one replaces the one that was counted least recently. If the bucket `is_strict`,
    new keys are refused instead, since clients could otherwise reset their own window
    by filling the memory with others.

    `unix_s`: returns the unix time in seconds.
    """

    def __init__(self, unix_s: Callable[[], float]) -> None:
        self._unix_s = unix_s
        self._buckets: defaultdict[str, Hits] = defaultdict(OrderedDict)
        self._marks: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._lock = threading.Lock()

    def hit(self, bucket: Bucket, key: str, is_counted: bool, mark: str = "") -> Window:
        """Returns the key's window after this request.

        The request is added if `is_counted` and the limit allows it. Requests with the
        same `mark` count only once; later ones are always allowed.
        """
        limit = bucket.limit
        period_s = bucket.period_s
        with self._lock:
            # Read under the lock, so that no other thread adds a later time first.
            now_s = self._unix_s()
            windows = self._buckets[bucket.name]
            _drop_old_windows(windows, now_s, period_s)
            hits_s = windows.get(key)
            if hits_s is None:
                if is_counted and bucket.is_strict and len(windows) >= MOST:
                    return Window(limit, 0, now_s + period_s, False)
                hits_s = array("d")
            _forget(hits_s, now_s, period_s)
            is_again = self._is_marked(bucket, key, mark, now_s)
            allowed = is_again or len(hits_s) < limit
            if is_counted and allowed and not is_again:
                self._add_mark(bucket, key, mark, now_s)
                hits_s.append(now_s)
                windows[key] = hits_s
                windows.move_to_end(key)
                if len(windows) > MOST:
                    windows.popitem(last=False)
            oldest_s = hits_s[0] if hits_s else now_s
            return Window(limit, limit - len(hits_s), oldest_s + period_s, allowed)

    def _is_marked(self, bucket: Bucket, key: str, mark: str, now_s: float) -> bool:
        marked_s = self._marks.get((bucket.name, key, mark))
        return marked_s is not None and now_s - bucket.period_s <= marked_s <= now_s

    def _add_mark(self, bucket: Bucket, key: str, mark: str, now_s: float) -> None:
        if not mark:
            return
        self._marks[bucket.name, key, mark] = now_s
        self._marks.move_to_end((bucket.name, key, mark))
        if len(self._marks) > MOST:
            self._marks.popitem(last=False)


def _drop_old_windows(windows: Hits, now_s: float, period_s: float) -> None:
    """Drops the windows whose period is over.

    They come first, since all windows of a bucket have the same period.
    """
    while windows:
        hits_s = next(iter(windows.values()))
        if hits_s and now_s - period_s <= hits_s[-1] <= now_s:
            return
        windows.popitem(last=False)


def _forget(hits_s: "array[float]", now_s: float, period_s: float) -> None:
    """Removes times that are older than the period, or in the future.

    Times are in the future if the clock was set back.
    """
    while hits_s and not now_s - period_s <= hits_s[0] <= now_s:
        del hits_s[0]


class Limiter:
    """Counts requests in `store`: memory:// for one process, redis:// for several.

    While Redis is unavailable, each process counts in its own memory: then each of
    several processes allows the full limit. `unix_s` returns the unix time in seconds,
    and `monotonic_s` the time of a monotonic clock in seconds.
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

        A request that exceeds the limit is not counted, and the window is not
        `allowed`. Requests with the same `mark` count once.
        """
        if self._shared is not None:
            answer = self._shared.hit(
                bucket.name,
                bucket.limit,
                bucket.period_s,
                key,
                is_counted,
                mark,
            )
            if answer is not None:
                return Window(*answer)
        return self._memory.hit(bucket, key, is_counted, mark)

    def peek(self, bucket: Bucket, key: str) -> Window:
        """Returns the key's window, and counts nothing."""
        return self.hit(bucket, key, is_counted=False)

    def is_complete(self) -> bool:
        """True if all processes count together; False while Redis is unavailable."""
        return self._shared is None or self._shared.is_reachable()
