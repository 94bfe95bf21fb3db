"""The times that the checks believed, and the leap that is doubted, as the database keeps them."""

from collections.abc import Mapping
from datetime import datetime

import orjson

from btcpay.chain.leap import Leap, Moment, reason_to_doubt
from btcpay.values.networks import Network
from btcpay.values.times import elapsed, from_ms, from_ms_or_none, to_ms
from storage.database import Database
from storage.queries import blocks, merchants, meta
from storage.queries.meta import Key

Note = Mapping[str, int | str | None]


def judge_clock(
    db: Database, network: Network, now: datetime, mark: str, is_agreed: bool
) -> str:
    """The reason not to believe the clock, which is noted; empty if it is believed from now on.

    `mark` is a time of the clock that nobody sets. `is_agreed`: enough sources show the same chain.
    """
    current = current_moment(db, now)
    believed = _believed_moment(db, now)
    leap = _noted_leap(db, mark)
    costs_work = network.pow_limit_bits is not None
    reason = reason_to_doubt(believed, current, leap, costs_work, is_agreed)
    if not reason:
        believe(db, current)
    elif leap is None or not leap.goes_on(now):
        note: Note = {"clock_ms": to_ms(now), "mark": mark, "why": reason}
        _put(db, Key.TIME_LEAP, note)
    return reason


def current_moment(db: Database, now: datetime) -> Moment:
    """The clock, and the newest block that we know."""
    top = db.row(blocks.TOP)
    if top:
        return Moment(now, from_ms(top.mined_ms), top.height)
    return Moment(now)


def believe(db: Database, moment: Moment) -> None:
    """Keeps the moment; the next leap is measured from it."""
    tip_ms = None
    if moment.tip_at is not None:
        tip_ms = to_ms(moment.tip_at)
    note: Note = {
        "clock_ms": to_ms(moment.clock_at),
        "tip_ms": tip_ms,
        "height": moment.height,
    }
    with db.write():
        _put(db, Key.TIME_BELIEVED, note)
        meta.put(db, Key.TIME_LEAP, "")


def noted_doubt(db: Database) -> str:
    """The reason why the last check did not believe the clock; empty if it did."""
    note = meta.get(db, Key.TIME_LEAP)
    if note:
        return str(orjson.loads(note)["why"])
    return ""


def _believed_moment(db: Database, now: datetime) -> Moment:
    """The last moment that was believed; before the first one, the time when the shop was made."""
    note = meta.get(db, Key.TIME_BELIEVED)
    if note:
        moment = orjson.loads(note)
        clock_at = from_ms(moment["clock_ms"])
        tip_at = from_ms_or_none(moment["tip_ms"])
        return Moment(clock_at, tip_at, moment["height"])
    created_ms = [row.created_ms for row in db.rows(merchants.ALL)]
    if created_ms:
        return Moment(from_ms(max(created_ms)))
    return Moment(now)


def _noted_leap(db: Database, mark: str) -> Leap | None:
    note = meta.get(db, Key.TIME_LEAP)
    if not note:
        return None
    leap = orjson.loads(note)
    return Leap(from_ms(leap["clock_ms"]), elapsed(leap["mark"], mark))


def _put(db: Database, key: Key, note: Note) -> None:
    meta.put(db, key, orjson.dumps(note).decode())
