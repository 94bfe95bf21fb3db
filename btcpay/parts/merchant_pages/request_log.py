"""Logs the API requests of each key, for the page that shows them to the merchant.

No request waits for it: requests are collected in memory, and a thread writes them.
"""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime

from peewee import OperationalError, PeeweeException

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

# How long requests are collected before they are written. A write costs more than a request, so the
# pause is doubled while requests keep coming. After a minute without any it is short again.
FIRST_PAUSE_S = 5
LONGEST_PAUSE_S = 60
MOST_KEYS = 1_000  # whose requests are collected at the same time
SHUTDOWN_S = 5  # longest wait at shutdown


# The time of a request, its operation, status and error code, and its duration in seconds.
Pending = tuple[datetime, str, int, str, float]


class RequestLog:
    """Collects API requests in memory. A thread writes them, within LONGEST_PAUSE_S.

    While the database is busy, they stay in memory; only the latest of each key fit. A
    killed process loses those that are not written yet. That is harmless: nothing is
    computed from the log.
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
        pause_s = FIRST_PAUSE_S
        written_s = -math.inf
        while not self._ending.is_set():
            self._has_pending.wait()
            if time.monotonic() - written_s > LONGEST_PAUSE_S:
                pause_s = FIRST_PAUSE_S
            self._ending.wait(pause_s)
            self.write()
            written_s = time.monotonic()
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        self._db.close()

    def write(self) -> bool:
        """Writes the collected requests. If the database is busy, keeps them; returns False."""
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
        except OperationalError:
            self._put_back(pending)
            return False
        except PeeweeException as error:
            log.warning("requests were not logged: %s", type(error).__name__)
            return False
        return True

    def _put_back(self, pending: Mapping[str, deque[Pending]]) -> None:
        """Collects the requests again, before those that were noted meanwhile."""
        with self._lock:
            for key_id, requests in pending.items():
                newer = self._pending.get(key_id, ())
                if newer or len(self._pending) < MOST_KEYS:
                    both = deque([*requests, *newer], MOST_REQUESTS)
                    self._pending[key_id] = both
            self._has_pending.set()


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
