"""Logs the API requests of each key, for the page that shows them to the merchant.

No request waits for it: requests are collected in memory, and a thread writes them.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from datetime import datetime

from peewee import PeeweeException

from btcpay import hooks
from btcpay.parts.merchant_pages.developers.key_requests import (
    MOST_REQUESTS,
    Request,
    add,
)
from btcpay.settings.settings import Settings
from btcpay.values.times import to_ms
from storage.database import Database

log = logging.getLogger(__name__)

# How long requests are collected before they are written: a program that asks every two seconds
# causes five times fewer writes. The page of a key says it too.
GATHER_S = 10
MOST_KEYS = 1_000  # whose requests are collected at the same time
SHUTDOWN_S = 5  # longest wait at shutdown


# The time of a request, its operation, status and error code, and its duration in seconds.
Pending = tuple[datetime, str, int, str, float]


class RequestLog:
    """Collects API requests in memory. A thread writes them, at most every GATHER_S seconds.

    If the database is busy, the requests are dropped. A killed process loses those that
    are not written yet. Both are harmless: nothing is computed from the log.
    """

    def __init__(self, db: Database, now: Callable[[], datetime]) -> None:
        self._db = db
        self._now = now
        self._pending: dict[str, deque[Pending]] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._has_pending = threading.Event()
        self._thread: threading.Thread | None = None

    def note(
        self,
        key_id: str,
        operation: str,
        status: int,
        error_code: str,
        took_s: float,
    ) -> None:
        """Adds a request that is being answered. Returns within microseconds."""
        request = (self._now(), operation, status, error_code, took_s)
        with self._lock:
            requests = self._pending.get(key_id)
            if requests is None:
                if len(self._pending) >= MOST_KEYS:
                    return
                requests = deque(maxlen=MOST_REQUESTS)
                self._pending[key_id] = requests
            requests.append(request)
            if not self._has_pending.is_set():
                self._wake_thread()

    def _wake_thread(self) -> None:
        self._has_pending.set()
        # started late, because threads do not survive the server's fork
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_forever, daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Writes the collected requests, and ends the thread.

        `note` must not be called afterwards.
        """
        self._ending.set()
        self._has_pending.set()
        if self._thread:
            self._thread.join(SHUTDOWN_S)

    def _write_forever(self) -> None:
        while not self._ending.is_set():
            self._has_pending.wait()
            self._ending.wait(GATHER_S)
            self.write()
        self._db.close()

    def write(self) -> bool:
        """Writes the collected requests. If the database is busy, drops them; returns False."""
        with self._lock:
            pending = self._pending
            self._pending = {}
            self._has_pending.clear()
        if not pending:
            return True
        new = {id: list(map(_converted, requests)) for id, requests in pending.items()}
        try:
            with self._db.write_if_free():
                add(self._db, new, to_ms(self._now()))
        except PeeweeException as error:
            log.info(
                "the requests of %d keys were not kept: %s",
                len(pending),
                type(error).__name__,
            )
            return False
        return True


def _converted(pending: Pending) -> Request:
    at, operation, status, error_code, took_s = pending
    took_ms = int(took_s * 1000) + 1  # rounded up
    return Request(to_ms(at), operation, status, error_code, took_ms)


def open_log(
    settings: Settings,
    db: Database,
    now: Callable[[], datetime],
) -> RequestLog | None:
    """Returns the log of this process; None if the merchant's pages are off."""
    if not settings.merchant_pages:
        return None
    return RequestLog(db, now)


HOOK = hooks.RequestLogs(open_log=open_log)
