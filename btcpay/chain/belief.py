"""The times that the checks believed, as the database keeps them, and the leap that is doubted."""

from datetime import datetime

import orjson

from btcpay.chain.leap import Leap, Moment, reason_to_doubt
from btcpay.values.networks import Network
from btcpay.values.times import elapsed, from_ms, from_ms_or_none, to_ms
from storage.database import Database
from storage.queries import blocks, merchants, meta
from storage.queries.meta import Key


def judge_clock(
    db: Database, network: Network, now: datetime, mark: str, is_agreed: bool
) -> str:
    """The reason not to believe the clock, which is noted; empty if it is believed from now on.

    `mark` is of the clock that nobody sets.
    """
    seen = current_moment(db, now)
    known = _known(db, now)
    leap = _leap(db, mark)
    why = reason_to_doubt(
        known, seen, leap, network.pow_limit_bits is not None, is_agreed
    )
    if not why:
        believe(db, seen)
    elif leap is None or not leap.goes_on(now):
        _put(db, Key.TIME_LEAP, {"clock_at": to_ms(now), "mark": mark, "why": why})
    return why


def current_moment(db: Database, now: datetime) -> Moment:
    """What is to be seen now: the clock, and the newest block that we know."""
    top = db.row(blocks.TOP)
    if top:
        return Moment(now, from_ms(top.mined_at), top.height)
    return Moment(now)


def believe(db: Database, seen: Moment) -> None:
    """Keeps what was seen as the time from which the next leap is measured."""
    tip_ms = None if seen.tip_at is None else to_ms(seen.tip_at)
    clock_ms = to_ms(seen.clock_at)
    known: dict[str, int | str | None]
    known = {"clock_at": clock_ms, "tip_at": tip_ms, "height": seen.height}
    with db.write():
        _put(db, Key.TIME_BELIEVED, known)
        meta.put(db, Key.TIME_LEAP, "")


def noted_doubt(db: Database) -> str:
    """The reason for which the last check did not believe the clock; empty if it did."""
    found = meta.get(db, Key.TIME_LEAP)
    if found:
        return str(orjson.loads(found)["why"])
    return ""


def _known(db: Database, now: datetime) -> Moment:
    """The last moment that was believed. Before the first, the time when the shop was made."""
    found = meta.get(db, Key.TIME_BELIEVED)
    if found:
        known = orjson.loads(found)
        tip_at = from_ms_or_none(known["tip_at"])
        return Moment(from_ms(known["clock_at"]), tip_at, known["height"])
    made = [row.created_at for row in db.rows(merchants.ALL)]
    return Moment(from_ms(max(made)) if made else now)


def _leap(db: Database, mark: str) -> Leap | None:
    found = meta.get(db, Key.TIME_LEAP)
    if not found:
        return None
    leap = orjson.loads(found)
    return Leap(from_ms(leap["clock_at"]), elapsed(leap["mark"], mark))


def _put(db: Database, key: Key, value: dict[str, int | str | None]) -> None:
    meta.put(db, key, orjson.dumps(value).decode())
