"""The outcome of an attempt: the delivery's next try, and the end of a dead receiver."""

import logging
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import Receiver
from storage.queries import deliveries, receivers

log = logging.getLogger(__name__)

ATTEMPT_S = 10
# Since the first attempt, as in the specification's example; after the last it is given up.
_HOURS_MIN = (
    (0, 0),
    (0, 5),
    (0, 35),
    (2, 35),
    (7, 35),
    (17, 35),
    (31, 35),
    (51, 35),
    (75, 35),
)
OFFSETS = [
    timedelta(hours=hours, minutes=minutes, seconds=5) for hours, minutes in _HOURS_MIN
]
# Up to a tenth more of the pause, so that deliveries that failed together do not return together.
JITTER_PERMILLE = 100
# A failing receiver is tried at least every half hour; checks are minutes apart.
PROBE_AFTER = timedelta(minutes=25)
DISABLED_AFTER = timedelta(days=5)
GONE = 410
# A mail that may have been sent is tried once more, when whoever waits for it has looked for it.
DOUBT_LASTS = timedelta(hours=1)
HELD_MS = 60_000  # longer than an attempt of ATTEMPT_S, even with a slow name server


class Answer(NamedTuple):
    """The outcome of an attempt; `status` is HTTP's or the program's, None when there was none.

    `text` is the answer's beginning, or the reason why there was none. Kinds of failure:
    `is_refusal`, others may be taken; `is_final`, this one never will be; `may_go_on`, the attempt
    may still be under way; `is_in_doubt`, it may have been taken, and whoever gets it twice cannot
    tell: a mail.
    """

    is_taken: bool
    status: int | None
    text: str
    is_refusal: bool = False
    is_final: bool = False
    may_go_on: bool = False
    is_in_doubt: bool = False

    @property
    def is_up(self) -> bool:
        return self.is_taken or self.is_refusal


def next_try(
    first_at: datetime, now: datetime, permille: int | None = None
) -> datetime | None:
    """The time of the next try of a delivery first tried at `first_at`; None when it is given up.

    `permille` of the pause is added, 0 to JITTER_PERMILLE, at random unless it is named.
    """
    at = next(
        (first_at + offset for offset in OFFSETS if first_at + offset > now), None
    )
    if at is None:
        return None
    part = secrets.randbelow(JITTER_PERMILLE + 1) if permille is None else permille
    return at + (at - now) * part // 1000


def why_disabled(
    status: int | None, failing_since: datetime, now: datetime
) -> str | None:
    """The reason to disable a receiver after a failure; None to go on."""
    if status == GONE:
        return "it answered 410 Gone"
    is_over = now - failing_since >= DISABLED_AFTER
    if is_over:
        return f"nothing could be delivered for {DISABLED_AFTER.days} days"
    return None


def note(
    db: Database,
    receiver: Receiver,
    row: deliveries.Due,
    answer: Answer,
    now: datetime,
    has_failed: bool,
) -> tuple[str | None, bool]:
    """Stores the outcome; the tally's label, and True if the receiver is disabled by it.

    The label is None where another process tried meanwhile. `has_failed`: the receiver did before.
    """
    first_at = from_ms(row.first_at) if row.first_at is not None else now
    is_doubted_twice = answer.is_in_doubt and row.doubted_at is not None
    is_over = answer.is_taken or answer.is_final or is_doubted_twice
    again_at = None if is_over else next_try(first_at, now)
    if answer.is_in_doubt and not is_over:
        again_at = now + DOUBT_LASTS
    since_ms = receiver.failing_since
    has_taken_none = since_ms is not None and since_ms <= to_ms(first_at)
    if not (is_over or again_at or answer.is_up) and has_taken_none:
        again_at = now + PROBE_AFTER  # until it is disabled
    is_mail = receiver.transport in receivers.MAILS
    taken = "sent" if is_mail else "delivered"
    label = taken if answer.is_taken else "failed" if again_at else "given_up"
    is_disabled = False
    with db.write():
        changed = db.run(
            deliveries.TRIED,
            receiver_id=row.receiver_id,
            about=row.about,
            attempts=row.attempts,
            next_at=None if again_at is None else to_ms(again_at),
            at=to_ms(now),
            delivered_at=to_ms(now) if answer.is_taken else None,
            status=answer.status,
            answer=answer.text,
            held_until=to_ms(now) + HELD_MS if answer.may_go_on else None,
            doubted_at=to_ms(now) if answer.is_in_doubt else None,
        )
        if not changed:
            return None, False
        if answer.is_up and has_failed:
            db.run(receivers.WORKS, id=receiver.id)
        elif not (answer.is_up or answer.is_final):
            is_disabled = _fails(db, receiver.id, answer, now, may_disable=not is_mail)
    return label, is_disabled


def _fails(
    db: Database, id: str, answer: Answer, now: datetime, may_disable: bool
) -> bool:
    db.run(receivers.FAILS, id=id, at=to_ms(now))
    since = from_ms(db.only(receivers.BY_ID, id=id).failing_since or to_ms(now))
    reason = why_disabled(answer.status, since, now) if may_disable else None
    if reason is None:
        return False
    if db.run(receivers.DISABLE, id=id, at=to_ms(now), reason=reason):
        log.error("webhook %s is disabled: %s", id, reason)
    db.run(deliveries.GIVE_UP, receiver_id=id)
    return True
