"""Logs the API requests of each key, for the page that shows them to the merchant."""

import logging
import math
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
from storage.background_writer import BackgroundWriter
from storage.database import Database

log = logging.getLogger(__name__)

# How long requests are collected before they are written. A write costs more than a request, so the
# pause is doubled while requests keep coming. After a minute without any it is short again.
FIRST_PAUSE_S = 5
LONGEST_PAUSE_S = 60
MOST_KEYS = 1_000  # whose requests are collected at the same time


# A request that is not written yet: its time, operation, HTTP status, error code ("" if none), and
# its duration in seconds. It becomes a Request when it is written, since `note` must be fast.
Pending = tuple[datetime, str, int, str, float]


class RequestLog(BackgroundWriter):
    """Collects API requests in memory. A thread writes them, within LONGEST_PAUSE_S.

    While the database is busy, they stay in memory: at most the newest MOST_REQUESTS of
    each key, and of at most MOST_KEYS keys. If the process is killed, the requests in
    memory are lost. That is harmless: nothing is computed from the log.
    """

    def __init__(self, db: Database, now: Callable[[], datetime]) -> None:
        super().__init__(db)
        self._now = now
        self._pending: dict[str, deque[Pending]] = {}
        self._next_pause_s = FIRST_PAUSE_S
        self._written_s = (
            -math.inf
        )  # the time of the last write, on the monotonic clock

    def note(
        self,
        key_id: str,
        operation: str,
        status: int,
        error_code: str,
        took_s: float,
    ) -> None:
        """Adds a request whose response begins. Returns within microseconds.

        `error_code` is the code in the error's response; "" if the response is no error.
        `took_s` is the time until the response begins, in seconds.
        """
        request = (self._now(), operation, status, error_code, took_s)
        with self._lock:
            requests = self._pending.get(key_id)
            if requests is None:
                if len(self._pending) >= MOST_KEYS:
                    return
                requests = deque(maxlen=MOST_REQUESTS)
                self._pending[key_id] = requests
            requests.append(request)
            self.wake()

    def pause_s(self) -> float:
        """Returns how many seconds requests are collected before the next write.

        Each call doubles the result of the next call, up to LONGEST_PAUSE_S. If nothing
        was written for longer than that, begins with FIRST_PAUSE_S again.
        """
        if time.monotonic() - self._written_s > LONGEST_PAUSE_S:
            self._next_pause_s = FIRST_PAUSE_S
        pause_s = self._next_pause_s
        self._next_pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return pause_s

    def write(self) -> bool:
        """Writes the collected requests. Returns False if the database fails.

        If the database is busy, the requests are kept for the next write. After another
        failure they are lost.
        """
        self._written_s = time.monotonic()
        with self._lock:
            pending = self._pending
            self._pending = {}
        if not pending:
            return True
        new = {id: list(map(_request_of, requests)) for id, requests in pending.items()}
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
        """Adds the requests to the collected ones again, before those noted meanwhile."""
        with self._lock:
            for key_id, requests in pending.items():
                newer = self._pending.get(key_id, ())
                # No room: the requests of this key are dropped.
                if not newer and len(self._pending) >= MOST_KEYS:
                    continue
                both = [*requests, *newer]
                self._pending[key_id] = deque(both, maxlen=MOST_REQUESTS)
            self._has_pending.set()


def _request_of(pending: Pending) -> Request:
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
