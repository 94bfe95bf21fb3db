"""How threads wait for a database, and write what they have together: each commit waits for a disk.

A number of them waits, and none behind a failure that it shares.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from peewee import OperationalError

from storage.faults import is_locked

T = TypeVar("T")
Transaction = Callable[[], AbstractContextManager[None]]

PLACES = 40  # of a service's 64 threads, and more than the connections to a server
PATIENCE_S = 0.1  # a busy database frees places sooner than that
LOCKED = "the database was locked a moment ago"


class TooManyWait(OperationalError):
    """Nothing was asked or written."""


class Places:
    """So many may be inside; one more waits PATIENCE_S for a place, and then is refused.

    From then on all others are refused at once, until somebody leaves.
    """

    def __init__(self) -> None:
        self._free, self._are_stuck = threading.Semaphore(PLACES), False

    def __enter__(self) -> None:
        if self._free.acquire(blocking=False):
            return
        if self._are_stuck or not self._free.acquire(timeout=PATIENCE_S):
            self._are_stuck = True
            raise TooManyWait(f"{PLACES} others wait for the database")

    def __exit__(self, *_: object) -> None:
        self._are_stuck = False
        self._free.release()


class _Work:
    """What a thread wants written; `is_done` when that is on the disk."""

    def __init__(self, do: Callable[[], Any]) -> None:
        self.do = do
        self.was_tried = self.is_done = False
        self.answer: Any = None


class Turn:
    """SQLite lets one writer in, and others sleep and try again: threads queue here instead.

    Reentrant. Whoever queues while another thread finds the file locked shares its failure: the
    eighth thread would wait eight times as long.
    """

    def __init__(self) -> None:
        self._places, self._lock = Places(), threading.RLock()
        self._failed_s = -math.inf
        self._waiting: deque[_Work] = deque()

    def __enter__(self) -> None:
        if self._lock.acquire(blocking=False):
            return
        asked_s = time.monotonic()
        with self._places:
            self._lock.acquire()
        if asked_s <= self._failed_s:
            self._lock.release()
            raise OperationalError(LOCKED)

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if is_locked(error):
            self._failed_s = time.monotonic()
        self._lock.release()

    def shared(self, transaction: Transaction, do: Callable[[], T]) -> T:
        """What `do` returns once that is on the disk. It may run in another thread, and twice.

        While one thread waits for the disk, others queue; the next one writes for all of them.
        Raises what `do` raises, and then nothing of it is stored.
        """
        mine, asked_s = _Work(do), time.monotonic()
        with self._places:
            self._waiting.append(mine)
            with self._lock:
                if not mine.was_tried and asked_s <= self._failed_s:
                    self._waiting.remove(mine)
                elif not mine.was_tried:
                    self._write_all(transaction)
                if mine.is_done:
                    answer: T = mine.answer
                    return answer
                if asked_s <= self._failed_s:
                    raise OperationalError(LOCKED)
                with transaction():
                    return do()

    def _write_all(self, transaction: Transaction) -> None:
        """Writes for all who wait, or for none: then each writes by itself, and sees why."""
        works = [self._waiting.popleft() for _ in range(len(self._waiting))]
        for work in works:
            work.was_tried = True
        if len(works) == 1:
            return
        try:
            with transaction():
                for work in works:
                    work.answer = work.do()
        except Exception:  # noqa: BLE001  it belongs to one of them, who meets it again
            return
        for work in works:
            work.is_done = True
