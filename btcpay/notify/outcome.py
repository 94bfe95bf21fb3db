"""Stores the outcome of an attempt: schedules a retry, or disables a failing receiver."""

import logging
from datetime import datetime, timedelta
from typing import NamedTuple

from btcpay.notify.schedule import PROBE_AFTER, next_try, reason_to_disable
from btcpay.values.times import from_ms, to_ms
from storage.database import Database, Values
from storage.models import Receiver
from storage.queries import deliveries, receivers

log = logging.getLogger(__name__)

ATTEMPT_S = 10
# The pause before the single retry of a mail that may have been sent.
DOUBT_LASTS = timedelta(hours=1)
HELD_MS = 60_000  # longer than an attempt of ATTEMPT_S, even with a slow DNS server


class Answer(NamedTuple):
    """The outcome of an attempt to send a delivery.

    - `is_taken`: True if the receiver has accepted the delivery.
    - `status`: the HTTP status, the exit status of the command, or the SMTP code; None
      if there was none.
    - `text`: the beginning of the response, or the reason for the failure.

    These are True only for some failures:

    - `is_refusal`: the receiver is up, and may accept other deliveries.
    - `is_final`: no retry can succeed.
    - `may_go_on`: the attempt may still be running.
    - `is_in_doubt`: the delivery is a mail that the server may have accepted.
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


def hold(db: Database, row: deliveries.Due, now: datetime) -> bool:
    """Claims a delivery before it is sent. Returns False if another process was faster.

    A line is a sequence of deliveries that are sent in order. The claim keeps another
    process from sending the next delivery of the line during this attempt. If the
    delivery belongs to no line, no claim is necessary, and the result is True.
    """
    if row.line is None:
        return True
    now_ms = to_ms(now)
    row_count = db.run(
        deliveries.HOLD,
        receiver_id=row.receiver_id,
        about=row.about,
        attempts=row.attempts,
        now=now_ms,
        until=now_ms + HELD_MS,
    )
    return row_count == 1


class StoredOutcome(NamedTuple):
    """The result of storing an outcome.

    `label` is the outcome's label in the metrics; None if nothing was stored.
    `is_disabled` is True if this attempt has disabled the receiver.
    """

    label: str | None
    is_disabled: bool


def note(
    db: Database,
    receiver: Receiver,
    row: deliveries.Due,
    answer: Answer,
    now: datetime,
    was_failing: bool,
) -> StoredOutcome:
    """Stores the outcome of an attempt to send a delivery.

    Also stores whether the receiver works or fails. A receiver, unless it is a mailbox,
    is disabled if it has failed for too long, or has said that it is gone. Stores
    nothing if another process has attempted the same delivery meanwhile.

    `was_failing` is True if the receiver was failing before this attempt.
    """
    next_at = _next_attempt_at(receiver, row, answer, now)
    is_mail = receiver.transport in receivers.MAILS
    is_disabled = False
    with db.write():
        row_count = db.run(deliveries.TRIED, **_columns(row, answer, next_at, now))
        if not row_count:
            return StoredOutcome(None, is_disabled=False)
        if answer.is_up and was_failing:
            db.run(receivers.WORKS, id=receiver.id)
        elif not (answer.is_up or answer.is_final):
            is_disabled = _note_failure(
                db,
                receiver.id,
                answer,
                now,
                may_disable=not is_mail,
            )
    return StoredOutcome(_label_of(answer, next_at, is_mail), is_disabled)


def _next_attempt_at(
    receiver: Receiver,
    row: deliveries.Due,
    answer: Answer,
    now: datetime,
) -> datetime | None:
    """Returns the time of the next attempt; None if there will be none."""
    if answer.is_taken or answer.is_final:
        return None
    if answer.is_in_doubt:
        was_in_doubt_before = row.doubted_ms is not None
        if was_in_doubt_before:
            return None
        return now + DOUBT_LASTS
    first_at = now
    if row.first_ms is not None:
        first_at = from_ms(row.first_ms)
    next_at = next_try(first_at, now)
    if next_at is not None or answer.is_up:
        return next_at
    failing_since_ms = receiver.failing_since
    if failing_since_ms is None:
        return None
    has_taken_nothing_since = failing_since_ms <= to_ms(first_at)
    if has_taken_nothing_since:
        return now + PROBE_AFTER  # retries go on until the receiver is disabled
    return None


def _columns(
    row: deliveries.Due,
    answer: Answer,
    next_at: datetime | None,
    now: datetime,
) -> Values:
    """Returns the parameters of the statement `deliveries.TRIED`."""
    now_ms = to_ms(now)
    columns: Values = {
        "receiver_id": row.receiver_id,
        "about": row.about,
        "attempts": row.attempts,
        "next_ms": None,
        "at": now_ms,
        "delivered_ms": None,
        "status": answer.status,
        "answer": answer.text,
        "held_until": None,
        "doubted_ms": None,
    }
    if next_at is not None:
        columns["next_ms"] = to_ms(next_at)
    if answer.is_taken:
        columns["delivered_ms"] = now_ms
    if answer.may_go_on:
        columns["held_until"] = now_ms + HELD_MS
    if answer.is_in_doubt:
        columns["doubted_ms"] = now_ms
    return columns


def _label_of(answer: Answer, next_at: datetime | None, is_mail: bool) -> str:
    """Returns the outcome's label in the metrics."""
    if answer.is_taken and is_mail:
        return "sent"
    if answer.is_taken:
        return "delivered"
    if next_at:
        return "failed"
    return "given_up"


def _note_failure(
    db: Database,
    id: str,
    answer: Answer,
    now: datetime,
    may_disable: bool,
) -> bool:
    """Stores a failure of the receiver, and disables the receiver if there is a reason.

    Returns True if this failure disables the receiver.
    """
    now_ms = to_ms(now)
    db.run(receivers.FAILS, id=id, at=now_ms)
    failing_since_ms = db.get(receivers.BY_ID, id=id).failing_since
    failing_since = from_ms(failing_since_ms or now_ms)
    reason = None
    if may_disable:
        reason = reason_to_disable(answer.status, failing_since, now)
    if reason is None:
        return False
    was_enabled = db.run(receivers.DISABLE, id=id, at=now_ms, reason=reason)
    if was_enabled:
        log.error("webhook %s is disabled: %s", id, reason)
    db.run(deliveries.GIVE_UP, receiver_id=id)
    return True
