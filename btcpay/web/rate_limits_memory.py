"""Rolling windows: how one counts, and a bounded number of them in a process's memory."""

import math
import threading
from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection
from typing import NamedTuple

MOST = 20_000  # windows of each bucket: 7 MB, and more than a shop has visitors in an hour

Hits = OrderedDict[str, "array[float]"]  # the times by key; the key counted last is last


class Bucket(NamedTuple):
    """A limit: each key may make `limit` requests in any `period_s` seconds."""

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


class MemoryWindows:
    """The time of every request, so that a window is exact. Thread safe.

    A window is dropped when its time is over. When a bucket has more than MOST, the one that
    counted nothing for longest is dropped too. A `kept` bucket drops none: instead a new window is
    full from its start, so that nobody can empty his own by filling the memory with others.
    """

    def __init__(self, unix_s: Callable[[], float], kept: Collection[Bucket]) -> None:
        self._unix_s = unix_s
        self._kept = kept
        self._buckets: defaultdict[str, Hits] = defaultdict(OrderedDict)
        self._lock = threading.Lock()

    def ask(self, bucket: Bucket, key: str, counts: bool) -> Window:
        """The window of this key; a request that `counts` is in it, unless the window is full."""
        _, limit, period_s = bucket
        with self._lock:
            now_s = self._unix_s()  # read under the lock, or a hit in between is ahead of it
            windows = self._buckets[bucket.name]
            _drop_ended(windows, now_s, period_s)
            hits_s = windows.get(key)
            if hits_s is None:
                if counts and len(windows) >= MOST and bucket in self._kept:
                    return Window(limit, 0, now_s + period_s, False)
                hits_s = array("d")
            _forget(hits_s, now_s, period_s)
            allowed = len(hits_s) < limit
            if counts and allowed:
                hits_s.append(now_s)
                windows[key] = hits_s
                windows.move_to_end(key)
                if len(windows) > MOST:
                    windows.popitem(last=False)
            oldest_s = hits_s[0] if hits_s else now_s
            return Window(limit, limit - len(hits_s), oldest_s + period_s, allowed)


def _drop_ended(windows: Hits, now_s: float, period_s: float) -> None:
    """Drops windows that have ended; they come first, since all of a bucket are equally long."""
    while windows:
        hits_s = next(iter(windows.values()))
        if hits_s and now_s - period_s <= hits_s[-1] <= now_s:
            return
        windows.popitem(last=False)


def _forget(hits_s: "array[float]", now_s: float, period_s: float) -> None:
    """Drops times older than the window, and future ones, left when a clock was set back."""
    while hits_s and not now_s - period_s <= hits_s[0] <= now_s:
        del hits_s[0]
