"""Limits how many threads wait for the database, and fails waiting threads together."""

import math
import threading
import time

from peewee import OperationalError

from storage.faults import is_locked

# a service has 64 threads; more than the connections of the PostgreSQL pool
PLACES = 40
PATIENCE_S = 0.1  # a database that is only busy frees a place sooner


class TooManyWait(OperationalError):
    """Too many threads wait for the database. Nothing was read or written."""


class Places:
    """A context manager that at most PLACES threads can be in at the same time.

    One more thread waits PATIENCE_S seconds. If it gets no place, TooManyWait is
    raised, there and at once in all other threads, until some thread leaves.
    """

    def __init__(self) -> None:
        self._free = threading.Semaphore(PLACES)
        self._are_stuck = False

    def __enter__(self) -> None:
        if self._free.acquire(blocking=False):
            return
        if self._are_stuck or not self._free.acquire(timeout=PATIENCE_S):
            self._are_stuck = True
            raise TooManyWait(f"{PLACES} others wait for the database")

    def __exit__(self, *_: object) -> None:
        self._are_stuck = False
        self._free.release()


class WriteQueue:
    """A reentrant lock that this process's threads take before they write to SQLite.

    If SQLite alone made threads wait, they would sleep and retry. A thread that was
    waiting while another found the file locked fails too, instead of waiting for its
    own time-out. Raises OperationalError.
    """

    def __init__(self) -> None:
        self._places = Places()
        self._lock = threading.RLock()
        self._failed_s = -math.inf

    def __enter__(self) -> None:
        if self._lock.acquire(blocking=False):
            return
        asked_s = time.monotonic()
        with self._places:
            self._lock.acquire()
        if asked_s <= self._failed_s:
            self._lock.release()
            raise OperationalError("the database was locked a moment ago")

    def __exit__(
        self,
        _kind: object,
        error: BaseException | None,
        _trace: object,
    ) -> None:
        if is_locked(error):
            self._failed_s = time.monotonic()
        self._lock.release()
