"""Loads the next deliveries of a queue from the database."""

from collections.abc import Iterable
from datetime import datetime

from btcpay.notify.delivery_queue import DeliveryQueue
from btcpay.notify.schedule import PROBE_AFTER
from btcpay.values.times import from_ms, to_ms
from storage.database import Database, Values
from storage.models import Receiver
from storage.queries import deliveries

PAGE = 100
TWICE = 2
Waiting = tuple[Receiver, deliveries.Due]


def fill(db: Database, queue: DeliveryQueue, now: datetime) -> None:
    """Loads the deliveries that the queue may send next, and adds them to the queue.

    - While the receiver is failing, adds one delivery, which tests the receiver.
    - If the receiver was failing but has accepted a delivery in this run, adds all
      waiting deliveries, the oldest first.
    - If the receiver was not failing, adds the deliveries that are due.

    It adds at most PAGE deliveries of each receiver.
    """
    queue.may_have_more = False
    if queue.is_failing:
        queue.rows.extend(_probe(db, queue, now))
    elif queue.was_failing:
        _fill_all(db, queue, now)
    else:
        _fill_due(db, queue, now)


def _fill_due(db: Database, queue: DeliveryQueue, now: datetime) -> None:
    for receiver in queue.receivers:
        page = db.rows(
            deliveries.DUE,
            receiver_id=receiver.id,
            until=to_ms(now),
            limit=PAGE,
        )
        queue.rows.extend(_without_tried(queue, receiver, page))
        queue.may_have_more |= len(page) == PAGE


def _fill_all(db: Database, queue: DeliveryQueue, now: datetime) -> None:
    waiting: list[Waiting] = []
    for receiver in queue.receivers:
        page = _oldest(db, receiver, now, queue.last.get(receiver.id), PAGE)
        if page:
            queue.last[receiver.id] = page[-1]
        waiting += _without_tried(queue, receiver, page)
        queue.may_have_more |= len(page) == PAGE
    if len(queue.receivers) > 1:
        waiting.sort(key=_time)
    queue.rows.extend(waiting)


def _probe(db: Database, queue: DeliveryQueue, now: datetime) -> list[Waiting]:
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
    waiting: list[Waiting] = []
    for receiver in queue.receivers:
        for row in _oldest(db, receiver, now, None, 1):
            waiting.append((receiver, row))
    if not waiting:
        return []
    oldest = min(waiting, key=_time)
    receiver, row = oldest
    key = (receiver.id, row.about)
    has_hung = row.held_until is not None and row.attempts >= TWICE
    if has_hung:
        other = _least_tried(db, queue, now, key)
        if other:
            return other
    queue.oldest = key
    return [oldest]


def _is_time(db: Database, queue: DeliveryQueue, now: datetime) -> bool:
    """True if it is time to test a failing receiver again.

    That is so if PROBE_AFTER has passed since the last failure, if a delivery has become
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
    oldest: tuple[str, str],
) -> list[Waiting]:
    """Returns the waiting delivery with the fewest attempts, other than `oldest`.

    Returns [] if there is no other delivery.
    """
    oldest_receiver_id, oldest_about = oldest
    others: list[Waiting] = []
    for receiver in queue.receivers:
        left_out = ""
        if receiver.id == oldest_receiver_id:
            left_out = oldest_about
        rows = db.rows(
            deliveries.LEAST_TRIED,
            receiver_id=receiver.id,
            about=left_out,
            now=to_ms(now),
            limit=1,
        )
        others += [(receiver, row) for row in rows]
    others.sort(key=lambda other: (other[1].attempts, _time(other)))
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
) -> list[Waiting]:
    return [
        (receiver, row) for row in rows if (receiver.id, row.about) not in queue.tried
    ]


def _time(waiting: Waiting) -> tuple[int, int]:
    _, row = waiting
    return row.created_ms, row.seq or 0
