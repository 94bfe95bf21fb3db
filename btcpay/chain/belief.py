"""Stores the last clock time that was believed, and a clock jump that is doubted.

`leap.py` decides whether the clock is believed.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

import orjson

from btcpay.chain.leap import Leap, Moment, reason_to_doubt
from btcpay.values.networks import Network
from btcpay.values.times import from_ms, from_ms_or_none, time_between, to_ms
from storage.database import Database
from storage.queries import blocks, merchants, meta
from storage.queries.meta import Key

# A check without other changes stores only once an hour that it believes the clock. That is often
# enough, since only a jump of two days is doubted.
BELIEVED_AGAIN = timedelta(hours=1)
Note = Mapping[str, int | str | None]


def judge_clock(
    db: Database,
    network: Network,
    now: datetime,
    mark: str,
    is_agreed: bool,
) -> str:
    """Decides whether the system clock is believed, and stores the result.

    Returns the reason to doubt it, or "" if it is believed. `mark` is what `boot_mark`
    (btcpay/values/times.py) returns now: the seconds since the machine's boot, which no
    change of the system clock affects, and the boot's id. `is_agreed` is True if enough
    sources show the same chain.
    """
    current = current_moment(db, now)
    believed = _believed_moment(db, now)
    leap = _noted_leap(db, mark)
    costs_work = network.pow_limit_bits is not None
    reason = reason_to_doubt(believed, current, leap, costs_work, is_agreed)
    if reason:
        # A jump that is stored already stays, so that its hour of waiting goes on.
        is_known_leap = leap is not None and leap.goes_on(now)
        if not is_known_leap:
            note: Note = {"clock_ms": to_ms(now), "mark": mark, "why": reason}
            _put(db, Key.TIME_LEAP, note)
    elif leap is not None or _is_outdated(meta.get(db, Key.TIME_BELIEVED), current):
        believe(db, current)
    return reason


def _is_outdated(note: str | None, current: Moment) -> bool:
    """True if the stored note of the believed moment is missing, or BELIEVED_AGAIN old.

    Also true if the current moment has a block, and the believed moment has none.
    """
    if not note:
        return True
    moment = orjson.loads(note)
    passed = current.clock_at - from_ms(moment["clock_ms"])
    has_first_block = moment["height"] is None and current.height is not None
    return abs(passed) >= BELIEVED_AGAIN or has_first_block


def current_moment(db: Database, now: datetime) -> Moment:
    """Returns the clock time `now`, and the newest block in the database."""
    top = db.get_or_none(blocks.TOP)
    if top:
        return Moment(now, from_ms(top.mined_ms), top.height)
    return Moment(now)


def believe(db: Database, moment: Moment) -> None:
    """Stores the moment as the last one that was believed, and ends any doubt.

    The next clock jump is measured from this moment.
    """
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
    """Returns the stored reason why the last check did not believe the clock.

    Returns "" if the last check believed it.
    """
    note = meta.get(db, Key.TIME_LEAP)
    if note:
        return str(orjson.loads(note)["why"])
    return ""


def _believed_moment(db: Database, now: datetime) -> Moment:
    """Returns the last moment that was believed.

    If there is none, returns the time when the newest merchant was created, or `now` if
    there is no merchant.
    """
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
    return Leap(from_ms(leap["clock_ms"]), time_between(leap["mark"], mark))


def _put(db: Database, key: Key, note: Note) -> None:
    meta.put(db, key, orjson.dumps(note).decode())
