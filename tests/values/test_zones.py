"""Days of a time zone: of 23 and 25 hours, at odd offsets, and one that never was."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from btcpay.values.times import day_of, start_of, to_ms

EPOCH = date(1970, 1, 1)
# Where a day begins, in UTC, and how many hours it has.
DAYS = {
    "a plain day": ("Europe/Berlin", "2026-01-01", "2025-12-31T23:00", 24),
    "clocks go forward": ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00", 23),
    "clocks go back": ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00", 25),
    "a quarter of an hour": ("Asia/Kathmandu", "2026-06-01", "2026-05-31T18:15", 24),
    "half an hour back": (
        "Australia/Lord_Howe",
        "2026-04-05",
        "2026-04-04T13:00",
        24.5,
    ),
    "half an hour forward": (
        "Australia/Lord_Howe",
        "2026-10-04",
        "2026-10-03T13:30",
        23.5,
    ),
    "the last one before the skip": (
        "Pacific/Apia",
        "2011-12-29",
        "2011-12-29T10:00",
        24,
    ),
    "the day that never was": ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00", 0),
    "the one after it": ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00", 24),
    "it begins at one o'clock": (
        "America/Sao_Paulo",
        "2018-11-04",
        "2018-11-04T03:00",
        23,
    ),
    "its last hour comes twice": (
        "America/Sao_Paulo",
        "2018-02-17",
        "2018-02-17T02:00",
        25,
    ),
    "its first hour comes twice": (
        "America/Havana",
        "2026-11-01",
        "2026-11-01T04:00",
        25,
    ),
    "its first minute comes twice": (
        "America/St_Johns",
        "2010-11-07",
        "2010-11-07T02:30",
        25,
    ),
    "nobody has set a zone": ("UTC", "2026-03-29", "2026-03-29T00:00", 24),
}


@pytest.mark.parametrize("case", DAYS)
def test_a_day_begins_and_ends_when_the_clocks_of_its_zone_say_so(case):
    name, written, begins, hours = DAYS[case]
    zone = ZoneInfo(name)
    day = (date.fromisoformat(written) - EPOCH).days
    begin = start_of(day, zone)
    end = start_of(day + 1, zone)
    assert begin == to_ms(datetime.fromisoformat(begins).replace(tzinfo=UTC))
    assert end - begin == timedelta(hours=hours) // timedelta(milliseconds=1)
    if hours:
        assert [day_of(at, zone) for at in (begin, end - 1)] == [day, day]
    assert day_of(begin - 1, zone) < day < day_of(end, zone) + (not hours)
