"""Times and days. The program uses aware UTC datetimes, the database milliseconds.

A name that ends with `_ms` is an int of milliseconds since 1970 UTC, as stored. A name
that ends with `_at` is a datetime, or its text in JSON. `btcpay/invoices/status.py`
makes datetimes from rows, and code that writes rows uses `to_ms`. Only entry points
read the clock; everything below them takes `now` as an argument.

A day of a time zone is a number, counted from 1970-01-01. It begins when the zone's
clocks first show its date, and ends when the next day begins. It can have 23 or 25
hours, or no hours if the zone skipped it.
"""

import re
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from btcpay.values.errors import BadRow, CommandError

SET_CLOCK = "set the clock by NTP: `timedatectl set-ntp true`"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = _EPOCH.date()
_MILLISECOND = timedelta(milliseconds=1)
_IS_CITY = re.compile(
    "(Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)/"
)
# Entries of the list that are no zones: one depends on the machine, one is a placeholder.
_NO_ZONES = {"localtime", "Factory"}


def to_ms(at: datetime) -> int:
    """Returns whole milliseconds since 1970 UTC, rounded down."""
    return (at - _EPOCH) // _MILLISECOND


def from_ms(ms: int) -> datetime:
    """Returns the aware UTC datetime of a stored time. Raises BadRow if it is invalid."""
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except (TypeError, OverflowError):
        raise BadRow(f"{ms!r} is no stored time") from None


def from_ms_or_none(ms: int | None) -> datetime | None:
    if ms is None:
        return None
    return from_ms(ms)


def from_unix_s(seconds: int) -> datetime:
    """Returns the aware UTC datetime of Unix seconds, such as a block header's time."""
    return _EPOCH + timedelta(seconds=seconds)


def start_of_hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def iso(at: datetime) -> str:
    """Returns ISO 8601 text with milliseconds and a trailing Z, as in API responses."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@lru_cache(maxsize=4096)  # lists and polls convert the same times again and again
def iso_ms(ms: int) -> str:
    return iso(from_ms(ms))


def utc_now() -> datetime:
    return datetime.now(UTC)


def boot_mark() -> str:
    """Returns the seconds since this machine's boot and the boot's id, as text.

    Changes of the clock do not affect them. The id is "" on systems other than Linux.
    """
    boot_id = ""
    if _BOOT_ID.exists():
        boot_id = _BOOT_ID.read_text().strip()
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return f"{time.clock_gettime_ns(clock) // 10**9} {boot_id}"


def time_between(since: str, mark: str) -> timedelta | None:
    """Returns the time from one text of `boot_mark` to a later one.

    Returns None if the machine was rebooted between them, or if `since` is empty.
    """
    first_s, _, first_boot_id = since.partition(" ")
    last_s, _, last_boot_id = mark.partition(" ")
    was_rebooted = first_boot_id != last_boot_id
    if not first_s or was_rebooted:
        return None
    seconds = int(last_s) - int(first_s)
    # without boot ids, less time since the boot means another boot
    if seconds < 0:
        return None
    return timedelta(seconds=seconds)


class Stretch(NamedTuple):
    """Consecutive days of one length, from `begin` until just before `end`.

    `day` is the number of the first day. `begin`, `end` and `length` are milliseconds.
    """

    begin: int
    end: int
    day: int
    length: int


@cache
def places() -> list[str]:
    """Returns the time zone names to choose from: cities and UTC.

    The first call takes about 10 ms.
    """
    names = available_timezones() - _NO_ZONES
    return sorted(name for name in names if name == "UTC" or _IS_CITY.match(name))


def checked_zone(name: str) -> str:
    """Returns a time zone's name as the time zone database spells it.

    `name` may be in any case. Raises CommandError if there is no such zone.
    """
    spellings = available_timezones() - _NO_ZONES
    spelling_by_name = {spelling.casefold(): spelling for spelling in spellings}
    spelling = spelling_by_name.get(name.casefold())
    if spelling is None:
        raise CommandError(
            f"{name!a} is not a time zone such as Europe/Berlin or America/New_York"
        )
    return spelling


def zone_of(name: str) -> ZoneInfo:
    """Returns the time zone of a stored name. Raises BadRow if this machine lacks it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError, TypeError):
        raise BadRow(f"{name!r} is not a time zone known here") from None


def date_of(day: int) -> date:
    """Returns the date of a day's number, which counts from 1970-01-01."""
    return _FIRST + timedelta(days=day)


def number_of(day: date) -> int:
    """Returns the number of a date's day, counted from 1970-01-01."""
    return (day - _FIRST).days


def in_zone(at: datetime, zone: ZoneInfo) -> datetime:
    """Returns a time without a zone as a time of `zone`. Its date and hour stay the same.

    A time that has a zone is returned unchanged. If the clocks of `zone` show the time
    twice, the earlier of the two is meant.
    """
    if at.tzinfo:
        return at
    return at.replace(tzinfo=zone)


def start_of(day: int, zone: ZoneInfo) -> int:
    """Returns the time at which a day begins in the zone, in ms since 1970 UTC.

    `day` is the day's number, counted from 1970-01-01.
    """
    midnight = datetime.combine(date_of(day), datetime.min.time())
    return to_ms(in_zone(midnight, zone))


def day_of(at_ms: int, zone: ZoneInfo) -> int:
    """Returns the day on which the time `at_ms` falls in the zone: days since 1970-01-01."""
    local = from_ms(at_ms).astimezone(zone)
    day = number_of(local.date())
    # Clocks that go back just after midnight show the previous date again.
    if start_of(day + 1, zone) <= at_ms:
        return day + 1
    return day


def stretches(first: int, last: int, zone: ZoneInfo) -> Iterator[Stretch]:
    """Yields the days from `first` to `last`, both included, as stretches of equal length.

    Days that the zone skipped are left out.
    """

    def length_of(day: int) -> int:
        return start_of(day + 1, zone) - start_of(day, zone)

    for length, group in groupby(range(first, last + 1), length_of):
        is_skipped = length == 0
        if is_skipped:
            continue
        days = list(group)
        yield Stretch(
            begin=start_of(days[0], zone),
            end=start_of(days[-1] + 1, zone),
            day=days[0],
            length=length,
        )
