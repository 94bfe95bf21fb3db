"""Times: aware UTC datetimes in the program, whole milliseconds since 1970 in the database.

A name in `_ms` is an int, as it is stored; a name in `_at` is a datetime, or its text in JSON.
`btcpay/invoices/status.py` makes datetimes from rows, and writers of rows use `to_ms`. Only entry
points read the clock; everything below takes `now` as an argument.

A day of a time zone is a number, counted from 1970-01-01. It begins when the zone's clocks first
show it, and ends where the next day begins: it may have 23 or 25 hours, or none where the zone
skipped it.
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
_NO_ZONES = {
    "localtime",
    "Factory",
}  # "localtime" depends on the machine, "Factory" is no zone


def to_ms(at: datetime) -> int:
    """Whole milliseconds since 1970 UTC, rounded down."""
    return (at - _EPOCH) // _MILLISECOND


def from_ms(ms: int) -> datetime:
    """The aware UTC datetime of a stored time. Raises BadRow."""
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except (TypeError, OverflowError):
        raise BadRow(f"{ms!r} is no stored time") from None


def from_ms_or_none(ms: int | None) -> datetime | None:
    if ms is None:
        return None
    return from_ms(ms)


def from_unix_s(seconds: int) -> datetime:
    """The aware UTC datetime of a block header's time."""
    return _EPOCH + timedelta(seconds=seconds)


def iso(at: datetime) -> str:
    """ISO 8601 with milliseconds and a trailing Z, as responses carry it."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@lru_cache(maxsize=4096)  # lists and polls repeat the same times
def iso_ms(ms: int) -> str:
    return iso(from_ms(ms))


def utc_now() -> datetime:
    return datetime.now(UTC)


def boot_mark() -> str:
    """The seconds since the start of this machine, and the start's id, which Linux alone has.

    No step of the clock changes them.
    """
    start = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return f"{time.clock_gettime_ns(clock) // 10**9} {start}"


def elapsed(since: str, mark: str) -> timedelta | None:
    """The time between two such marks; None when the machine was started between them."""
    (began, _, start) = since.partition(" ")
    (at, _, same) = mark.partition(" ")
    if not began or start != same or int(at) < int(began):
        return None
    return timedelta(seconds=int(at) - int(began))


class Stretch(NamedTuple):
    """Days of one length from `begin` until just before `end`; `day` is the first of them."""

    begin: int
    end: int
    day: int
    length: int


@cache
def places() -> list[str]:
    """Names to choose from: cities, and UTC. Reading them takes some 10 ms, once."""
    names = available_timezones() - _NO_ZONES
    return sorted(name for name in names if name == "UTC" or _IS_CITY.match(name))


def checked_zone(name: str) -> str:
    """The name as the time zone database spells it. Raises CommandError for any other name."""
    names = {known.casefold(): known for known in available_timezones() - _NO_ZONES}
    if name.casefold() not in names:
        raise CommandError(
            f"{name!a} is not a time zone such as Europe/Berlin or America/New_York"
        )
    return names[name.casefold()]


def zone_of(name: str) -> ZoneInfo:
    """The zone of a stored name. Raises BadRow."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError, TypeError):
        raise BadRow(f"{name!r} is not a time zone known here") from None


def date_of(day: int) -> date:
    return _FIRST + timedelta(days=day)


def number_of(day: date) -> int:
    return (day - _FIRST).days


def in_zone(at: datetime, zone: ZoneInfo) -> datetime:
    """The time, in this zone if it names none; where clocks show it twice, the first."""
    if at.tzinfo:
        return at
    return at.replace(tzinfo=zone)


def start_of(day: int, zone: ZoneInfo) -> int:
    return to_ms(in_zone(datetime.combine(date_of(day), datetime.min.time()), zone))


def day_of(at_ms: int, zone: ZoneInfo) -> int:
    shown = number_of(from_ms(at_ms).astimezone(zone).date())
    # Clocks that go back just after midnight show the day before once more.
    return shown + (start_of(shown + 1, zone) <= at_ms)


def stretches(first: int, last: int, zone: ZoneInfo) -> Iterator[Stretch]:
    """The days from `first` to `last`, without those that the zone has skipped."""

    def length_of(day: int) -> int:
        return start_of(day + 1, zone) - start_of(day, zone)

    for length, group in groupby(range(first, last + 1), length_of):
        days = list(group)
        if length:
            yield Stretch(
                start_of(days[0], zone), start_of(days[-1] + 1, zone), days[0], length
            )
