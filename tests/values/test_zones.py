"""Days of a time zone: of 23 and 25 hours, at odd offsets, and one that never was."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from btcpay.values.errors import BadRow, CommandError
from btcpay.values.times import checked_zone, day_of, start_of, stretches, to_ms, zone_of

EPOCH = date(1970, 1, 1)
# Where a day begins, in UTC, and how many hours it has.
DAYS = {
    "a plain day": ("Europe/Berlin", "2026-01-01", "2025-12-31T23:00", 24),
    "clocks go forward": ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00", 23),
    "clocks go back": ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00", 25),
    "a quarter of an hour": ("Asia/Kathmandu", "2026-06-01", "2026-05-31T18:15", 24),
    "half an hour back": ("Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00", 24.5),
    "half an hour forward": ("Australia/Lord_Howe", "2026-10-04", "2026-10-03T13:30", 23.5),
    "the last one before the skip": ("Pacific/Apia", "2011-12-29", "2011-12-29T10:00", 24),
    "the day that never was": ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00", 0),
    "the one after it": ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00", 24),
    "it begins at one o'clock": ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00", 23),
    "its last hour comes twice": ("America/Sao_Paulo", "2018-02-17", "2018-02-17T02:00", 25),
    "its first hour comes twice": ("America/Havana", "2026-11-01", "2026-11-01T04:00", 25),
    "its first minute comes twice": ("America/St_Johns", "2010-11-07", "2010-11-07T02:30", 25),
    "nobody has set a zone": ("UTC", "2026-03-29", "2026-03-29T00:00", 24),
}


@pytest.mark.parametrize("case", DAYS)
def test_a_day_begins_and_ends_when_the_clocks_of_its_zone_say_so(case):
    name, written, begins, hours = DAYS[case]
    zone, day = ZoneInfo(name), (date.fromisoformat(written) - EPOCH).days
    begin, end = start_of(day, zone), start_of(day + 1, zone)
    assert begin == to_ms(datetime.fromisoformat(begins).replace(tzinfo=UTC))
    assert end - begin == timedelta(hours=hours) // timedelta(milliseconds=1)
    if hours:
        assert [day_of(at, zone) for at in (begin, end - 1)] == [day, day]
    assert day_of(begin - 1, zone) < day < day_of(end, zone) + (not hours)


def test_stretches_of_days_of_one_length_have_every_moment_once_and_in_its_day():
    for name in {name for name, *_ in DAYS.values()}:
        zone = ZoneInfo(name)
        first, last = ((date(year, 6, 1) - EPOCH).days for year in (2009, 2027))
        found = list(stretches(first, last, zone))
        assert (found[0].begin, found[-1].end) == (start_of(first, zone), start_of(last + 1, zone))
        assert all(one.end == next.begin for one, next in zip(found, found[1:], strict=False))
        assert len(found) < 100, name
        for one in found:
            for at in (one.begin, one.begin + one.length - 1, one.end - one.length, one.end - 1):
                assert one.day + (at - one.begin) // one.length == day_of(at, zone), (name, at)


def test_a_zone_is_one_of_the_databases_names_and_written_as_there():
    names = ("Europe/Berlin", "europe/berlin", "utc")
    assert [checked_zone(name) for name in names] == ["Europe/Berlin", "Europe/Berlin", "UTC"]
    wrong = ("", "Europe", "Berlin", "../../etc/passwd", "localtime", "Factory", "CET-1", "\0")
    for name in wrong:
        with pytest.raises(CommandError, match="is not a time zone such as Europe/Berlin"):
            checked_zone(name)


def test_a_stored_zone_that_this_machine_does_not_know_is_said():
    assert zone_of("Asia/Kathmandu").key == "Asia/Kathmandu"
    for wrong in ("Atlantis/Poseidonis", "../up", "Europe", None):
        with pytest.raises(BadRow, match="is not a time zone known here"):
            zone_of(wrong)
