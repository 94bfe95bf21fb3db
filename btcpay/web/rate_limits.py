"""Rate limits by rolling windows: the requests of a key or an address in some time.

The specification has the limits in section 8. The windows are in a process's memory, or in a store
that processes share.
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

# Windows of each bucket: 7 MB, and more than a shop has visitors in an hour.
MOST = 20_000

# Unix times in seconds, by key; the key that was counted last is last.
Hits = OrderedDict[str, "array[float]"]


class Bucket(NamedTuple):
    """A limit: each key may make `limit` requests in any `period_s` seconds.

    `is_strict`: once the memory is full, new keys are refused, and no window is dropped early.
    """

    name: str
    limit: int
    period_s: int
    is_strict: bool = False


class Window(NamedTuple):
    """A window after a request. Its oldest request leaves it at `resets_s`, a unix time."""

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


READS = Bucket("read", 120, period_s=60)
WRITES = Bucket("write", 30, period_s=60)
# A paid order costs a shop's plug-in one write and three reads. pretix polls 300 invoices in a row.
SHOP_READS = Bucket("shop-read", 600, period_s=60)
SHOP_WRITES = Bucket("shop-write", 120, period_s=60)
FAILED_AUTH = Bucket("auth", 20, period_s=60, is_strict=True)
# Ten a second: enough for twenty people behind one address, whose pages ask every two seconds.
VISITS = Bucket("visit", 600, period_s=60)
# For one invoice, so that endless requests for its page block no other: enough for four open tabs.
LOOKS = Bucket("look", 120, period_s=60)
# Imported only if it is needed: the driver takes 200 ms and 6 MB.
_SHARED_WINDOWS = "btcpay.web.rate_limits_redis"


def link_invoices(per_hour: int) -> Bucket:
    """The window for invoices that one visitor makes through payment links."""
    return Bucket("link", per_hour, period_s=3600)


def missing_driver(store: str) -> str:
    """The advice to install a store's missing driver; empty if none is missing."""
    if store == "memory://" or find_spec("redis"):
        return ""
    return (
        "BLOCKTILL_RATE_LIMIT_STORE needs a driver for Redis: pip install --require-hashes"
        " -r requirements/redis.txt, in a clone of the sources"
    )


class MemoryWindows:
    """Windows in memory, exact since the time of every request is in them. Thread safe.

    A window is dropped once its time is over. If a bucket has more than MOST, the one that counted
    nothing for longest is dropped as well. A bucket that `is_strict` drops none early, and a new
    window is full from its start: nobody can empty their own by filling the memory with others.
    """

    def __init__(self, unix_s: Callable[[], float]) -> None:
        self._unix_s = unix_s
        self._buckets: defaultdict[str, Hits] = defaultdict(OrderedDict)
        self._marks: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._lock = threading.Lock()

    def hit(self, bucket: Bucket, key: str, is_counted: bool, mark: str = "") -> Window:
        """The window of this key, with the request in it if it `is_counted` and fits.

        Requests with the same `mark` are one: those after the first are allowed and not counted.
        """
        limit = bucket.limit
        period_s = bucket.period_s
        with self._lock:
            # Read under the lock: a hit in between would be ahead of it.
            now_s = self._unix_s()
            windows = self._buckets[bucket.name]
            _drop_ended(windows, now_s, period_s)
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


def _drop_ended(windows: Hits, now_s: float, period_s: float) -> None:
    """Drops ended windows. They come first, since all windows of a bucket are equally long."""
    while windows:
        hits_s = next(iter(windows.values()))
        if hits_s and now_s - period_s <= hits_s[-1] <= now_s:
            return
        windows.popitem(last=False)


def _forget(hits_s: "array[float]", now_s: float, period_s: float) -> None:
    """Drops times that are older than the window, and future ones from before a clock's step."""
    while hits_s and not now_s - period_s <= hits_s[0] <= now_s:
        del hits_s[0]


class Limiter:
    """Counts requests in `store`: memory:// for one process, redis:// for more.

    While a shared store is away, each process counts for itself: no client within its limit is
    refused for that, and one beyond it gets no more than the limit from each process.

    `unix_s`: the unix time in seconds. `monotonic_s`: the seconds of a clock that never steps.
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
        self, bucket: Bucket, key: str, is_counted: bool = True, mark: str = ""
    ) -> Window:
        """Counts one request, unless the window is full: then it is not `allowed`.

        With a `mark` it is counted once, however often it comes.
        """
        if self._shared is not None:
            answer = self._shared.hit(
                bucket.name, bucket.limit, bucket.period_s, key, is_counted, mark
            )
            if answer is not None:
                return Window(*answer)
        return self._memory.hit(bucket, key, is_counted, mark)

    def peek(self, bucket: Bucket, key: str) -> Window:
        """The window of this key; nothing is counted."""
        return self.hit(bucket, key, is_counted=False)

    def is_complete(self) -> bool:
        """True if all requests are counted together; False while a shared store is away."""
        return self._shared is None or self._shared.is_reachable()
