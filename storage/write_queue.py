"""Queues of threads at a database: a bounded number waits, and a failure ends the wait of all."""

import math
import threading
import time

from peewee import OperationalError

from storage.faults import is_locked

PLACES = 40  # of a service's 64 threads, and more than the connections to a server
PATIENCE_S = 0.1  # a busy database frees places sooner than that


class TooManyWait(OperationalError):
    """Nothing was asked or written."""


class Places:
    """So many may be inside; one more waits PATIENCE_S for a place, and then is refused.

    From then on all others are refused at once, until somebody leaves.
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
    """Threads that want to write queue here: SQLite lets one in and has the others sleep and retry.

    Reentrant. Whoever queues while another thread finds the file locked shares its failure: the
    eighth thread would wait eight times as long.
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
        self, _kind: object, error: BaseException | None, _trace: object
    ) -> None:
        if is_locked(error):
            self._failed_s = time.monotonic()
        self._lock.release()
