"""Writes timestamps in the background, so that no request waits for them.

Examples are when an API key was last used, and when somebody last viewed an invoice.
"""

import logging
import threading
from datetime import datetime

from peewee import PeeweeException, Query

from btcpay.values.times import to_ms
from storage.database import Database

log = logging.getLogger(__name__)

EVERY_MS = 60_000  # at most one write a minute for each subject: a page polls every two seconds
GATHER_S = 1
SHUTDOWN_S = 5  # longest wait at shutdown, if another process holds the database
# Maximum number of subjects in memory. If it is reached, all are forgotten.
MAX_SUBJECTS = 10_000


class Notes:
    """Collects timestamps in memory. A thread writes them, at most once a second.

    Each timestamp is written by a query with the parameters `id` and `at`. A crash
    loses at most the last timestamps. That is harmless, since they are only precise to
    a minute.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._noted_ms: dict[tuple[int, str], int] = {}
        self._pending: dict[tuple[int, str], tuple[Query, int]] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._has_pending = threading.Event()
        self._thread: threading.Thread | None = None

    def note(self, query: Query, subject: str, now: datetime) -> None:
        """Schedules `query` to store that `subject` (an id) was used at `now`.

        Returns within microseconds. Nothing is scheduled if the same query was
        scheduled for this subject less than EVERY_MS ago.
        """
        key = (id(query), subject)
        at_ms = to_ms(now)
        noted_ms = self._noted_ms.get(key)
        if noted_ms is not None and abs(at_ms - noted_ms) < EVERY_MS:
            return
        with self._lock:
            if len(self._noted_ms) >= MAX_SUBJECTS:
                self._noted_ms.clear()
            self._noted_ms[key] = at_ms
            self._pending[key] = (query, at_ms)
            self._has_pending.set()
            # started late, because threads do not survive the server's fork
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_forever, daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Writes the pending timestamps, and ends the thread.

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
            self._has_pending.clear()
            self._write()
        self._db.close()

    def _write(self) -> None:
        with self._lock:
            pending = self._pending
            self._pending = {}
        if not pending:
            return
        try:
            with self._db.batch():
                for (_, subject), (query, at_ms) in pending.items():
                    self._db.run(query, id=subject, at=at_ms)
        except PeeweeException as error:
            log.warning(
                "could not note %d uses: %s", len(pending), type(error).__name__
            )
