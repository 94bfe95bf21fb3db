"""Writes timestamps in the background, so that no request waits for them.

Examples are when an API key was last used, and when somebody last viewed an invoice.
"""

import logging
from datetime import datetime

from peewee import PeeweeException, Query

from btcpay.values.times import to_ms
from storage.background_writer import BackgroundWriter
from storage.database import Database

log = logging.getLogger(__name__)

EVERY_MS = 60_000  # at most one write a minute for each subject: a page polls every two seconds
GATHER_S = 1
# Maximum number of subjects in memory. If it is reached, all are forgotten.
MAX_SUBJECTS = 10_000


class Notes(BackgroundWriter):
    """Collects timestamps in memory. A thread writes them, at most once a second.

    Each timestamp is written by a query with the parameters `id` and `at`. A crash may
    lose the last timestamps. That is harmless, since they are only precise to a minute.
    """

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._noted_ms: dict[tuple[int, str], int] = {}
        self._pending: dict[tuple[int, str], tuple[Query, int]] = {}

    def note(self, query: Query, subject: str, now: datetime) -> None:
        """Schedules `query` to store that `subject` (an id) was used at `now`.

        Returns within microseconds. Nothing is scheduled if the same query was
        scheduled for this subject less than EVERY_MS ago.
        """
        key = (id(query), subject)
        at_ms = to_ms(now)
        noted_ms = self._noted_ms.get(key)
        # the clock may have been set back meanwhile
        if noted_ms is not None and abs(at_ms - noted_ms) < EVERY_MS:
            return
        with self._lock:
            if len(self._noted_ms) >= MAX_SUBJECTS:
                self._noted_ms.clear()
            self._noted_ms[key] = at_ms
            self._pending[key] = (query, at_ms)
            self.wake()

    def pause_s(self) -> float:
        return GATHER_S

    def write(self) -> None:
        """Writes the collected timestamps. If the database fails, they are lost."""
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
