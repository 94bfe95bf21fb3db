"""Rolling windows that one process keeps in memory, bounded however many visitors come."""

import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection

from limits.storage import MemoryStorage, Storage

MOST = 20_000  # windows of each kind: 7 MB, and more than a shop has visitors in an hour

Windows = OrderedDict[str, "array[float]"]  # by key, the times; last counted, last


class OwnWindows(MemoryStorage):
    """The library's memory storage without its thread, which keeps empty windows for ever.

    A window is dropped when its time is over. When a kind has more than MOST, the one that counted
    nothing for longest is dropped too. A `kept` kind drops none: instead a new window is full from
    its start, so that nobody can empty his own window by filling the memory with others.
    """

    STORAGE_SCHEME = None  # type: ignore[assignment] # `memory://` stays the library's own

    def __init__(self, unix_s: Callable[[], float], kept: Collection[str]) -> None:
        Storage.__init__(self)
        self._unix_s = unix_s
        self._kept = kept
        self._kinds: dict[str, Windows] = {}
        self._lock = threading.Lock()

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Counts a request unless `limit` of them came in the last `expiry` seconds."""
        kind = _kind(key)
        with self._lock:
            now_s = self._unix_s()  # under the lock: else a hit in between is ahead of it
            windows = self._kinds.setdefault(kind, Windows())
            _drop_ended(windows, now_s, expiry)
            if key not in windows and len(windows) >= MOST and kind in self._kept:
                return False
            hits_s = windows.get(key, array("d"))
            _forget(hits_s, now_s, expiry)
            if len(hits_s) + amount > limit:
                return False
            hits_s.extend([now_s] * amount)
            windows[key] = hits_s
            windows.move_to_end(key)
            if len(windows) > MOST:
                windows.popitem(last=False)
            return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """When the oldest request of the window came, and how many there are."""
        with self._lock:
            now_s = self._unix_s()
            hits_s = self._kinds.get(_kind(key), Windows()).get(key, array("d"))
            _forget(hits_s, now_s, expiry)
            return (hits_s[0] if hits_s else now_s), len(hits_s)


def _kind(key: str) -> str:
    """The namespace with which the library's name of a window begins."""
    return key.partition("/")[0]


def _drop_ended(windows: Windows, now_s: float, expiry_s: float) -> None:
    """Drops windows that have ended: they are the first, since all of a kind are equally long."""
    while windows:
        hits_s = next(iter(windows.values()))
        if hits_s and now_s - expiry_s <= hits_s[-1] <= now_s:
            return
        windows.popitem(last=False)


def _forget(hits_s: "array[float]", now_s: float, expiry_s: float) -> None:
    """Drops times older than the window, and times ahead, which a clock set back has left."""
    while hits_s and not now_s - expiry_s <= hits_s[0] <= now_s:
        del hits_s[0]
