"""Runs the work of parts (optional plug-ins), so that a failing part stops nothing else.

Failed work is stored, and retried after a pause that grows with each failure.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.models import PartWork
from storage.queries import part_work
from storage.queries.pauses import LONGEST_MS

T = TypeVar("T")

log = logging.getLogger(__name__)

NO_HEIGHT = -1
NO_INVOICE = ""
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(milliseconds=LONGEST_MS)
REASON_LENGTH = 200
INTERRUPTED = "its process ended"


class Work(NamedTuple):
    """One task of a part (an optional plug-in).

    - `kind`: "block" (handle a new block), "undo" (undo a block after a reorganisation),
      "money" (recount the total that an invoice belongs to, such as that of a bill) or
      "check" (what the part does at the end of each check).
    - `height`: the height of the block, if the work is about one.
    - `invoice_id`: the id of the invoice, if the work is about one.
    """

    part: str
    kind: str
    height: int = NO_HEIGHT
    invoice_id: str = NO_INVOICE

    @property
    def key(self) -> Values:
        """The columns that identify the work in the database."""
        return {
            "part": self.part,
            "kind": self.kind,
            "height": self.height,
            "invoice_id": self.invoice_id,
        }

    def __str__(self) -> str:
        return f"{self.part}, {part_work.describe_work(self.kind, self.height, self.invoice_id)}"


def work_of(row: PartWork) -> Work:
    return Work(row.part, row.kind, row.height, row.invoice_id)


def plan(db: Database, work: Work, now: datetime) -> None:
    """Stores work to be done later.

    Call this function in the database transaction that makes the work necessary.
    """
    new: Values = {"failures": 0, "next_ms": to_ms(now), "reason": ""}
    db.run(part_work.ADD, **work.key | new)


def attempt(db: Database, work: Work, now: datetime, do: Callable[[], None]) -> bool:
    """Does stored work and removes it from the database, in one transaction.

    `do` does the work. Returns False if the work fails; it is then retried after a
    pause.

    A failure is counted before the work begins, in case the process dies during the
    work. After the first such death the next run retries at once. After a second one,
    perhaps for lack of memory, the work is retried after a pause.
    """
    row = db.get_or_none(part_work.OF, **work.key)
    is_first_attempt = row is None or row.failures == 0
    pause = None
    if is_first_attempt:
        pause = timedelta(0)
    _count_failure(db, work, INTERRUPTED, now, pause=pause)
    try:
        with db.write():
            do()
            db.run(part_work.DONE, **work.key)
    except Exception as error:  # noqa: BLE001 - a part's failure must not stop the core
        _note_error(db, work, error, now)
        return False
    return True


def isolate(
    db: Database,
    work: Work,
    now: datetime,
    do: Callable[[], T],
    otherwise: T,
) -> T:
    """Does a part's work inside the caller's transaction, and returns its result.

    `do` does the work. If it fails, only its own changes are rolled back, the work is stored for a
    retry, and `otherwise` is returned. The caller's transaction goes on.
    """
    try:
        with db.write():
            return do()
    except Exception as error:  # noqa: BLE001 - a part's failure must not stop the core
        _count_failure(db, work, reason_of(error), now)
        log.error("%s: %s; it is tried again", work, reason_of(error))  # noqa: TRY400
    return otherwise


def note_failure(db: Database, work: Work, error: Exception, now: datetime) -> None:
    """Counts and logs a failure of work that ran outside `attempt` and `isolate`.

    The work is stored for a retry.
    """
    _count_failure(db, work, reason_of(error), now)
    log.error("%s: %s; it is tried again", work, reason_of(error))


def reason_of(error: Exception) -> str:
    """Returns the error's type and its message, on one line.

    A longer text is cut after REASON_LENGTH characters.
    """
    words = " ".join(str(error).split())
    if words:
        return f"{type(error).__name__}: {words}"[:REASON_LENGTH]
    return type(error).__name__


def pause_after(failures: int) -> timedelta:
    """Returns the pause after a failure, until the work is retried.

    `failures` is the number of earlier failures. The pause is FIRST_PAUSE if there were
    none, and doubles with each of them, up to LONGEST_PAUSE.
    """
    most_doublings = (LONGEST_PAUSE // FIRST_PAUSE).bit_length()
    doublings = min(failures, most_doublings)
    pause: timedelta = FIRST_PAUSE * 2**doublings
    return min(pause, LONGEST_PAUSE)


def _count_failure(
    db: Database,
    work: Work,
    reason: str,
    now: datetime,
    pause: timedelta | None = None,
) -> None:
    """Counts one more failure, and schedules the retry after `pause`.

    If `pause` is None, the pause grows with the number of failures.
    """
    row = db.get_or_none(part_work.OF, **work.key)
    if pause is None:
        failures_before = 0
        if row:
            failures_before = row.failures
        pause = pause_after(failures_before)
    new: Values = {"failures": 1, "next_ms": to_ms(now + pause), "reason": reason}
    db.run(part_work.FAIL, **work.key | new)


def _note_error(db: Database, work: Work, error: Exception, now: datetime) -> None:
    """Replaces the stored reason INTERRUPTED by the error, and schedules the retry.

    The failure itself was counted before the work began.
    """
    reason = reason_of(error)
    with db.write():
        row = db.get_or_none(part_work.OF, **work.key)
        if row:
            failures_before = row.failures - 1
            changed: Values = {
                "failures": row.failures,
                "next_ms": to_ms(now + pause_after(failures_before)),
                "reason": reason,
            }
            db.run(part_work.DONE, **work.key)
            db.run(part_work.ADD, **work.key | changed)
    log.error("%s: %s; it is tried again", work, reason)
