"""Rolling windows, which count the requests of each key in the last seconds, in memory.

A client is identified by a key, such as the id of its API key or its IP address. The same
windows in Redis, which several processes share, are in rate_limits_redis.py.
"""

import math
import threading
from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import NamedTuple

# The maximum number of windows in a bucket. They take 7 MB, and are more than the visitors of a
# shop in an hour.
MOST = 20_000

# The times of counted requests by key, in Unix seconds. The key whose request was counted last
# comes last.
Hits = OrderedDict[str, "array[float]"]


class Bucket(NamedTuple):
    """A limit: each key may send `limit` requests in any `period_s` seconds.

    MemoryWindows says what `is_strict` means.
    """

    name: str
    limit: int
    period_s: int
    is_strict: bool = False


class Window(NamedTuple):
    """The state of a key's rolling window after a request.

    `remaining` is the number of further requests that the limit allows now.
    `exact_reset_s` is the Unix time at which the oldest request leaves the window.
    `allowed` is True if the limit allows this request.
    """

    limit: int
    remaining: int
    exact_reset_s: float
    allowed: bool

    @property
    def reset_s(self) -> int:
        """The Unix time at which the oldest request leaves the window, rounded up."""
        return math.ceil(self.exact_reset_s)

    def retry_after_s(self, now_s: float) -> int:
        """Returns how many seconds to wait until one more request is allowed.

        The result is rounded up, and never less than 1.
        """
        return max(1, math.ceil(self.exact_reset_s - now_s))


class MemoryWindows:
    """Rolling windows in the memory of this process. Thread-safe.

    A window stores the time of each counted request, and is deleted when the last
    request is older than the period. If a bucket has MOST windows already, the window
    of a new key replaces the window whose last counted request is the oldest. But if
    the bucket `is_strict`, a new key is refused instead: otherwise clients could get rid
    of their own window by sending requests with many other keys.

    `unix_s` returns the Unix time in seconds.
    """

    def __init__(self, unix_s: Callable[[], float]) -> None:
        self._unix_s = unix_s
        self._buckets: defaultdict[str, Hits] = defaultdict(OrderedDict)
        self._marks: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._lock = threading.Lock()

    def hit(self, bucket: Bucket, key: str, is_counted: bool, mark: str = "") -> Window:
        """Returns the key's window after this request.

        The request is counted if `is_counted` is True and the limit allows it. A
        request whose `mark` was already counted for this key in the period is always
        allowed, and not counted again. An empty `mark` has no effect.
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
                is_full = len(windows) >= MOST
                if is_full and bucket.is_strict and is_counted:
                    return Window(limit, 0, now_s + period_s, allowed=False)
                hits_s = array("d")
            _forget(hits_s, now_s, period_s)
            is_repeated = self._is_marked(bucket, key, mark, now_s)
            allowed = is_repeated or len(hits_s) < limit
            if is_counted and allowed and not is_repeated:
                self._add_mark(bucket, key, mark, now_s)
                hits_s.append(now_s)
                _store_as_newest(windows, key, hits_s)
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
    """Deletes the windows whose last counted request is older than the period.

    These windows come first in `windows`, since all windows of a bucket have the same
    period. If the clock was set back, the last counted request of some windows is in
    the future. These windows come last, and are deleted too.
    """
    while windows:
        first_key = next(iter(windows))
        if _last_hit_s(windows, first_key) >= now_s - period_s:
            break
        del windows[first_key]
    while windows:
        last_key = next(reversed(windows))
        if _last_hit_s(windows, last_key) <= now_s:
            break
        del windows[last_key]


def _last_hit_s(windows: Hits, key: str) -> float:
    """Returns the time of the key's last counted request; a window has at least one."""
    return windows[key][-1]


def _store_as_newest(windows: Hits, key: str, hits_s: "array[float]") -> None:
    """Stores the key's window as the last one. Deletes the first one of too many."""
    windows[key] = hits_s
    windows.move_to_end(key)
    if len(windows) > MOST:
        windows.popitem(last=False)


def _forget(hits_s: "array[float]", now_s: float, period_s: float) -> None:
    """Removes times that are older than the period. `hits_s` is in ascending order."""
    while hits_s and hits_s[0] < now_s - period_s:
        del hits_s[0]
