"""The calendar of bills, each case a sentence."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from btcpay.parts.bills.calendar import due_ms, local_time, reminders_ms, renewal_ms
from btcpay.values.times import from_ms, to_ms

BERLIN, TOKYO, APIA = map(ZoneInfo, ("Europe/Berlin", "Asia/Tokyo", "Pacific/Apia"))
NEW_YORK = ZoneInfo("America/New_York")


def ms(text, zone=UTC):
    return to_ms(datetime.fromisoformat(text).replace(tzinfo=zone))


def utc(at_ms):
    return at_ms and f"{from_ms(at_ms):%Y-%m-%d %H:%M}"


LOCAL = {
    "the next week": ("2026-01-15 10:00", "week", 1, "2026-01-22 10:00"),
    "the next month": ("2026-01-15 10:00", "month", 1, "2026-02-15 10:00"),
    "over the new year": ("2026-12-15 10:00", "month", 1, "2027-01-15 10:00"),
    "two years on": ("2026-12-15 10:00", "year", 2, "2028-12-15 10:00"),
    "a short month's last": ("2026-01-31 10:00", "month", 1, "2026-02-28 10:00"),
    "the 31st comes back": ("2026-01-31 10:00", "month", 2, "2026-03-31 10:00"),
    "a leap year's last": ("2027-11-30 10:00", "month", 3, "2028-02-29 10:00"),
    "no leap year": ("2028-02-29 10:00", "year", 1, "2029-02-28 10:00"),
    "the next leap year": ("2028-02-29 10:00", "year", 4, "2032-02-29 10:00"),
}
IN_ZONE = {
    "summer time keeps the clock's time":
        ("2026-03-15 10:00", "month", 1, BERLIN, "2026-04-15 08:00"),
    "an hour that is left out is the next one":
        ("2026-03-22 02:30", "week", 1, BERLIN, "2026-03-29 01:30"),
    "an hour that comes twice is the first one":
        ("2026-10-18 02:30", "week", 1, BERLIN, "2026-10-25 00:30"),
    "the week after it is at its own hour again":
        ("2026-03-22 02:30", "week", 2, BERLIN, "2026-04-05 00:30"),
    "the last day is the zone's": ("2026-01-31 23:30", "month", 1, TOKYO, "2026-02-28 14:30"),
    "a day that the zone has left out is the next one":
        ("2011-12-23 08:00", "week", 1, APIA, "2011-12-30 18:00"),
}  # fmt: skip
DUE = {
    "two weeks later": ("2026-03-14 10:00", 14, BERLIN, "2026-03-28 22:59"),
    "a short day's end": ("2026-03-15 10:00", 14, BERLIN, "2026-03-29 21:59"),
    "the zone's own day": ("2026-03-14 23:30", 0, BERLIN, "2026-03-15 22:59"),
    "the same day": ("2026-03-14 10:00", 0, TOKYO, "2026-03-14 14:59"),
}
RECALLED = {
    "nine in the morning, summer time or not": (
        "2026-03-14 10:00", 14, {"soon": "2026-03-25 08:00", "overdue": "2026-03-29 07:00"}),
    "made just before nine": (
        "2026-03-14 07:59", 3, {"soon": "2026-03-14 08:00", "overdue": "2026-03-18 08:00"}),
    "made at nine of that day, when no first reminder comes":
        ("2026-03-14 08:00", 3, {"overdue": "2026-03-18 08:00"}),
    "due at once": ("2026-03-14 10:00", 0, {"overdue": "2026-03-15 08:00"}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("first", "every", "number", "local"), LOCAL.values(), ids=LOCAL
)
def test_a_series_has_the_first_ones_local_time(first, every, number, local):
    found = local_time(datetime.fromisoformat(first), every, number)
    assert f"{found:%Y-%m-%d %H:%M}" == local


@pytest.mark.parametrize(
    ("first", "every", "number", "zone", "at"), IN_ZONE.values(), ids=IN_ZONE
)
def test_a_renewal_comes_at_the_shops_time(first, every, number, zone, at):
    assert (
        utc(renewal_ms(datetime.fromisoformat(first), every, number, None, zone)) == at
    )


@pytest.mark.parametrize(
    ("until", "is_made"),
    [("2026-02-14", False), ("2026-02-15", True), ("2026-02-16", True)],
    ids=["the day before", "its own day is included", "the day after"],
)
def test_a_series_ends_with_its_last_day(until, is_made):
    first = datetime.fromisoformat("2026-01-15 23:59")
    found = renewal_ms(first, "month", 1, date.fromisoformat(until), NEW_YORK)
    assert (found is not None) == is_made


@pytest.mark.parametrize(("made", "days", "zone", "due"), DUE.values(), ids=DUE)
def test_a_bill_is_due_at_the_end_of_its_local_day(made, days, zone, due):
    assert utc(due_ms(ms(made), days, zone)) == due


@pytest.mark.parametrize(("made", "days", "at"), RECALLED.values(), ids=RECALLED)
def test_a_customer_is_reminded(made, days, at):
    made_ms = ms(made)
    found = reminders_ms(made_ms, due_ms(made_ms, days, BERLIN), BERLIN)
    assert {name: utc(when) for name, when in found.items()} == at
