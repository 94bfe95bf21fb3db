"""Notes how an attempt went: for its delivery, and for its receiver."""

import logging
from datetime import datetime

from btcpay.notify.retries import PROBE_AFTER, Answer, next_try, why_disabled
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import Receiver
from storage.queries import deliveries, receivers
from storage.queries.totals import tallies

log = logging.getLogger(__name__)

# Longer than an attempt takes, with a name server that takes its time.
HELD_MS = 60_000


def note(
    db: Database, receiver: Receiver, row: deliveries.Due, answer: Answer, now: datetime
) -> bool:
    """Writes it, unless somebody else has tried meanwhile; whether the receiver is disabled."""
    first_at = from_ms(row.first_at) if row.first_at is not None else now
    is_over = answer.is_taken or answer.is_final
    again_at = None if is_over else next_try(first_at, now)
    if not (is_over or again_at or answer.is_up) and _is_dead(receiver, first_at):
        again_at = now + PROBE_AFTER  # until it is disabled
    is_mail = receiver.transport in receivers.MAILS
    name, taken = ("mails", "sent") if is_mail else ("webhook_deliveries", "delivered")
    label = taken if answer.is_taken else "failed" if again_at else "given_up"
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
            held_until=to_ms(now) + HELD_MS if row.line and answer.may_go_on else None,
        )
        if not changed:
            return False
        db.run(tallies.ADD, name=name, label=label, total=1)
        if answer.is_up:
            db.run(receivers.WORKS, id=receiver.id)
        elif not answer.is_final:
            return _fails(db, receiver.id, answer, now, may_disable=not is_mail)
    return False


def _is_dead(receiver: Receiver, first_at: datetime) -> bool:
    """Whether nothing else was taken either since that attempt."""
    since_ms = receiver.failing_since
    return since_ms is not None and since_ms <= to_ms(first_at)


def _fails(db: Database, id: str, answer: Answer, now: datetime, may_disable: bool) -> bool:
    db.run(receivers.FAILS, id=id, at=to_ms(now))
    since = from_ms(db.only(receivers.BY_ID, id=id).failing_since or to_ms(now))
    reason = why_disabled(answer.status, since, now) if may_disable else None
    if reason is None:
        return False
    if db.run(receivers.DISABLE, id=id, at=to_ms(now), reason=reason):
        log.error("webhook %s is disabled: %s", id, reason)
    db.run(deliveries.GIVE_UP, receiver_id=id)
    return True
