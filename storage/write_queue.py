"""Limits how many threads wait for the database, and fails waiting threads together."""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from peewee import OperationalError

from storage.faults import is_locked

# How many of a service's 64 threads may wait. It is more than the PostgreSQL pool's connections.
PLACES = 40
PATIENCE_S = 0.1  # if the database is only busy, a place becomes free sooner


class TooManyWait(OperationalError):
    """Too many threads wait for the database. Nothing was read or written."""


class Places:
    """A context manager for at most PLACES threads at the same time.

    If all places are taken, a thread waits PATIENCE_S seconds for one, then raises
    TooManyWait. From then on further threads raise it at once, until a thread leaves.
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

    @contextmanager
    def if_free(self) -> Iterator[None]:
        """Takes a place for the block. Raises TooManyWait at once if all are taken."""
        if not self._free.acquire(blocking=False):
            raise TooManyWait(f"{PLACES} others wait for the database")
        try:
            yield
        finally:
            self._free.release()


class WriteQueue:
    """A reentrant lock that this process's threads take before they write to SQLite.

    Without it SQLite would make threads sleep and retry. If a thread finds the file
    locked by another process, the threads that waited meanwhile raise OperationalError
    too, instead of each waiting for its own time-out. Raises TooManyWait if too many
    threads wait.
    """

    def __init__(self) -> None:
        self._places = Places()
        self._lock = threading.RLock()
        # The monotonic time when another process last held the file's lock for too long.
        self._failed_s = -math.inf

    def __enter__(self) -> None:
        if self._lock.acquire(blocking=False):
            return
        asked_s = time.monotonic()
        with self._places:
            self._lock.acquire()
        # Another thread has found the file locked while this one waited for the queue.
        failed_meanwhile = asked_s <= self._failed_s
        if failed_meanwhile:
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

    @contextmanager
    def if_free(self) -> Iterator[None]:
        """Takes the lock for the block, or raises TooManyWait after PATIENCE_S seconds.

        If the block then finds the file locked by another process, the threads that
        waited meanwhile do not fail.
        """
        if not self._lock.acquire(timeout=PATIENCE_S):
            raise TooManyWait("others wait for the database")
        try:
            yield
        finally:
            self._lock.release()
