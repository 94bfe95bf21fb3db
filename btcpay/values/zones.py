"""Days of a time zone: their beginnings, and the day of a moment.

A day is a number, counted from 1970-01-01; a moment is milliseconds since 1970 UTC. A day begins
when its zone's clocks first show it, and ends where the next day begins: it may have 23 or 25
hours, or none where the zone skipped it.
"""

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from functools import cache
from itertools import groupby
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from btcpay.values.errors import BadRow, CommandError
from btcpay.values.times import from_ms, to_ms

_FIRST = date(1970, 1, 1)
_IS_CITY = re.compile("(Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)/")
_NO_ZONES = {"localtime", "Factory"}  # the one depends on the machine, the other is no zone


class Stretch(NamedTuple):
    """Days of one length from `begin` until just before `end`; `day` is the first of them."""

    begin: int
    end: int
    day: int
    length: int


@cache
def places() -> list[str]:
    """Names to choose from: a city each, and UTC. Reading them takes some 10 ms, once."""
    names = available_timezones() - _NO_ZONES
    return sorted(name for name in names if name == "UTC" or _IS_CITY.match(name))


def checked_zone(name: str) -> str:
    """The name as the time zone database has it. Raises CommandError for none of its names."""
    names = {known.casefold(): known for known in available_timezones() - _NO_ZONES}
    if name.casefold() not in names:
        raise CommandError(f"{name!a} is not a time zone such as Europe/Berlin or America/New_York")
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
    """The time, in this zone if it has none; of a time that comes twice, the first."""
    return at if at.tzinfo else at.replace(tzinfo=zone)


def start_of(day: int, zone: ZoneInfo) -> int:
    """The first moment of the day."""
    return to_ms(in_zone(datetime.combine(date_of(day), time()), zone))


def day_of(at_ms: int, zone: ZoneInfo) -> int:
    """The day that a moment belongs to."""
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
            yield Stretch(start_of(days[0], zone), start_of(days[-1] + 1, zone), days[0], length)
