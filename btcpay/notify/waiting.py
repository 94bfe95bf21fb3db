"""Loads the next deliveries of a queue from the database."""

from collections.abc import Iterable
from datetime import datetime

from btcpay.notify.delivery_queue import DeliveryQueue, QueuedDelivery
from btcpay.notify.schedule import PROBE_AFTER
from btcpay.values.times import from_ms, to_ms
from storage.database import Database, Values
from storage.models import Receiver
from storage.queries import deliveries

PAGE = 100
TWICE = 2


def fill(db: Database, queue: DeliveryQueue, now: datetime) -> None:
    """Loads the deliveries that the queue may send next, and adds them to the queue.

    - While the receiver is failing, adds one delivery, which tests the receiver.
    - If the receiver was failing but has accepted a delivery in this run, adds all
      waiting deliveries, the oldest first.
    - If the receiver was not failing, adds the deliveries that are due.

    Adds at most PAGE deliveries of each receiver.
    """
    queue.may_have_more = False
    if queue.is_failing:
        queue.rows.extend(_probe(db, queue, now))
    elif queue.was_failing:
        _fill_all(db, queue, now)
    else:
        _fill_due(db, queue, now)


def _fill_due(db: Database, queue: DeliveryQueue, now: datetime) -> None:
    """Adds the deliveries that are due, up to PAGE of each receiver."""
    for receiver in queue.receivers:
        page = db.rows(
            deliveries.DUE,
            receiver_id=receiver.id,
            until=to_ms(now),
            limit=PAGE,
        )
        queue.rows.extend(_without_tried(queue, receiver, page))
        if len(page) == PAGE:
            queue.may_have_more = True


def _fill_all(db: Database, queue: DeliveryQueue, now: datetime) -> None:
    """Adds the next waiting deliveries, due or not, up to PAGE of each receiver."""
    waiting: list[QueuedDelivery] = []
    for receiver in queue.receivers:
        last = queue.last.get(receiver.id)
        page = _oldest(db, receiver, now, last=last, limit=PAGE)
        if page:
            queue.last[receiver.id] = page[-1]
        waiting += _without_tried(queue, receiver, page)
        if len(page) == PAGE:
            queue.may_have_more = True
    if len(queue.receivers) > 1:
        waiting.sort(key=_age_key)
    queue.rows.extend(waiting)


def _probe(db: Database, queue: DeliveryQueue, now: datetime) -> list[QueuedDelivery]:
    """Returns the delivery that tests a failing receiver; [] if it is too early for a test.

    1. The test is usually the oldest delivery, even if it is not due.
    2. The receiver may refuse only the oldest delivery, and accept others. So after a
       refusal the delivery with the fewest attempts is tried in the same run.
    3. If the oldest delivery has timed out twice, the delivery with the fewest attempts is
       tried instead: an attempt that times out takes all the time of a run.
    """
    if queue.oldest is not None:
        return _least_tried(db, queue, now, queue.oldest)
    if not _is_time(db, queue, now):
        return []
    oldest = _oldest_of_all(db, queue, now)
    if oldest is None:
        return []
    # `held_until` is set if the last attempt timed out.
    has_hung = oldest.row.held_until is not None and oldest.row.attempts >= TWICE
    if has_hung:
        other = _least_tried(db, queue, now, oldest.key)
        if other:
            return other
    queue.oldest = oldest.key
    return [oldest]


def _oldest_of_all(
    db: Database, queue: DeliveryQueue, now: datetime
) -> QueuedDelivery | None:
    """Returns the oldest waiting delivery to any of the queue's receivers; None if none waits."""
    waiting: list[QueuedDelivery] = []
    for receiver in queue.receivers:
        rows = _oldest(db, receiver, now, last=None, limit=1)
        waiting += [QueuedDelivery(receiver, row) for row in rows]
    return min(waiting, key=_age_key, default=None)


def _is_time(db: Database, queue: DeliveryQueue, now: datetime) -> bool:
    """True if it is time to test a failing receiver again.

    It is time if PROBE_AFTER has passed since the last failure, if a delivery has become
    due since the last failure, or if the clock was set back.
    """
    failed_ms = max(receiver.failed_ms or 0 for receiver in queue.receivers)
    pause = now - from_ms(failed_ms)
    was_clock_set_back = failed_ms > to_ms(now)
    if pause >= PROBE_AFTER or was_clock_set_back:
        return True
    for receiver in queue.receivers:
        fell_due = db.get(
            deliveries.FELL_DUE,
            receiver_id=receiver.id,
            since=failed_ms,
            until=to_ms(now),
        )
        if fell_due[0]:
            return True
    return False


def _least_tried(
    db: Database,
    queue: DeliveryQueue,
    now: datetime,
    oldest_key: tuple[str, str],
) -> list[QueuedDelivery]:
    """Returns the waiting delivery with the fewest attempts, other than the oldest one.

    Returns [] if there is no other delivery.
    """
    oldest_receiver_id, oldest_about = oldest_key
    others: list[QueuedDelivery] = []
    for receiver in queue.receivers:
        about_to_leave_out = ""
        if receiver.id == oldest_receiver_id:
            about_to_leave_out = oldest_about
        rows = db.rows(
            deliveries.LEAST_TRIED,
            receiver_id=receiver.id,
            about=about_to_leave_out,
            now=to_ms(now),
            limit=1,
        )
        others += [QueuedDelivery(receiver, row) for row in rows]
    others.sort(key=_attempts_key)
    return others[:1]


def _oldest(
    db: Database,
    receiver: Receiver,
    now: datetime,
    last: deliveries.Due | None,
    limit: int,
) -> list[deliveries.Due]:
    """Returns up to `limit` waiting deliveries, the oldest first.

    If `last` is given, begins with the next delivery after that one.
    """
    values: Values = {
        "receiver_id": receiver.id,
        "now": to_ms(now),
        "event_seq": -1,
        "created_ms": 0,
        "about": "",
        "limit": limit,
    }
    if last is not None:
        values["event_seq"] = last.seq or 0
        values["created_ms"] = last.created_ms
        values["about"] = last.about
    return db.rows(deliveries.OLDEST, **values)


def _without_tried(
    queue: DeliveryQueue,
    receiver: Receiver,
    rows: Iterable[deliveries.Due],
) -> list[QueuedDelivery]:
    waiting = [QueuedDelivery(receiver, row) for row in rows]
    return [delivery for delivery in waiting if delivery.key not in queue.tried]


def _age_key(delivery: QueuedDelivery) -> tuple[int, int]:
    """Returns the sort key that puts the oldest delivery first."""
    return delivery.row.created_ms, delivery.row.seq or 0


def _attempts_key(delivery: QueuedDelivery) -> tuple[int, tuple[int, int]]:
    """Returns the sort key that puts the fewest attempts first, then the oldest delivery."""
    return delivery.row.attempts, _age_key(delivery)
