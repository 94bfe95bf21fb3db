"""Which deliveries a lane makes next, from those that wait in the database."""

from collections.abc import Iterable
from datetime import datetime

from btcpay.notify.lane import Lane
from btcpay.notify.outcome import PROBE_AFTER
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import Receiver
from storage.queries import deliveries

PAGE = 100
TWICE = 2
Waiting = tuple[Receiver, deliveries.Due]


def fill(db: Database, lane: Lane, now: datetime) -> None:
    """Reads what the lane may send next.

    What is due; while it fails, one event to ask it with; after a recovery all that waits, oldest
    first.
    """
    lane.may_have_more = False
    if lane.is_failing:
        lane.rows.extend(_probe(db, lane, now))
    elif lane.was_failing:
        _fill_all(db, lane, now)
    else:
        _fill_due(db, lane, now)


def _fill_due(db: Database, lane: Lane, now: datetime) -> None:
    for receiver in lane.receivers:
        page = db.rows(
            deliveries.DUE, receiver_id=receiver.id, until=to_ms(now), limit=PAGE
        )
        lane.rows.extend(_untried(lane, receiver, page))
        lane.may_have_more |= len(page) == PAGE


def _fill_all(db: Database, lane: Lane, now: datetime) -> None:
    waiting: list[Waiting] = []
    for receiver in lane.receivers:
        page = _oldest(db, receiver, now, lane.last.get(receiver.id), PAGE)
        if page:
            lane.last[receiver.id] = page[-1]
        waiting += _untried(lane, receiver, page)
        lane.may_have_more |= len(page) == PAGE
    if len(lane.receivers) > 1:
        waiting.sort(key=_time)
    lane.rows.extend(waiting)


def _probe(db: Database, lane: Lane, now: datetime) -> list[Waiting]:
    """The event to ask a failing lane with: the oldest of all, due or not.

    So that one which is never taken stops no other, the one that was tried least is next, in the
    same run, when the oldest may be the only one that is refused; and before it, when the oldest
    has taken all of the time that a run has for an attempt.
    """
    if lane.oldest is not None:
        return _least_tried(db, lane, now, lane.oldest)
    if not _is_time(db, lane, now):
        return []
    oldest = min(
        (
            (receiver, row)
            for receiver in lane.receivers
            for row in _oldest(db, receiver, now, None, 1)
        ),
        key=_time,
        default=None,
    )
    if oldest is None:
        return []
    receiver, row = oldest
    key = (receiver.id, row.about)
    has_hung = row.held_until is not None and row.attempts >= TWICE
    if has_hung and (other := _least_tried(db, lane, now, key)):
        return other
    lane.oldest = key
    return [oldest]


def _is_time(db: Database, lane: Lane, now: datetime) -> bool:
    """True each half hour, and as soon as something has become due since the last failure."""
    failed_ms = max(receiver.failed_at or 0 for receiver in lane.receivers)
    pause = now - from_ms(failed_ms)
    if pause >= PROBE_AFTER or failed_ms > to_ms(now):  # a clock that was set back
        return True
    return any(
        db.only(
            deliveries.FELL_DUE,
            receiver_id=receiver.id,
            since=failed_ms,
            until=to_ms(now),
        )[0]
        for receiver in lane.receivers
    )


def _least_tried(
    db: Database, lane: Lane, now: datetime, oldest: tuple[str, str]
) -> list[Waiting]:
    others = [
        (receiver, row)
        for receiver in lane.receivers
        for row in db.rows(
            deliveries.LEAST_TRIED,
            receiver_id=receiver.id,
            about=oldest[1] if receiver.id == oldest[0] else "",
            now=to_ms(now),
            limit=1,
        )
    ]
    others.sort(key=lambda other: (other[1].attempts, _time(other)))
    return others[:1]


def _oldest(
    db: Database,
    receiver: Receiver,
    now: datetime,
    last: deliveries.Due | None,
    limit: int,
) -> list[deliveries.Due]:
    return db.rows(
        deliveries.OLDEST,
        receiver_id=receiver.id,
        now=to_ms(now),
        event_seq=-1 if last is None else last.seq or 0,
        created_at=0 if last is None else last.created_at,
        about="" if last is None else last.about,
        limit=limit,
    )


def _untried(
    lane: Lane, receiver: Receiver, rows: Iterable[deliveries.Due]
) -> list[Waiting]:
    return [
        (receiver, row) for row in rows if (receiver.id, row.about) not in lane.tried
    ]


def _time(waiting: Waiting) -> tuple[int, int]:
    _, row = waiting
    return row.created_at, row.seq or 0
