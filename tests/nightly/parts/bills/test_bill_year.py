"""A year of two hundred series in three zones: exactly the bills that a calendar says.

The check runs when it likes: late, several times at once, after outages of a week; its
clock steps back, and it is killed in the middle of a transaction. The test's own calendar walks
over the year's days one by one, and knows no arithmetic of months.
"""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from btcpay.parts.bills import actions, queries
from btcpay.parts.bills.after_check import on_check
from btcpay.values.times import to_ms
from tests.support.bills import all_bills, new_bill
from tests.support.builders import at_once

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
BEGIN = datetime(2027, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=366)
SERIES = 200


class Killed(BaseException):
    """The process is gone, in the middle of what it did."""


def is_last(day):
    return (day + timedelta(days=1)).month != day.month


def is_begun(first, every, local):
    """True if a period of the series that began at `first` begins on this local day."""
    day = local.date()
    began = first.date()
    if day <= began:
        return False
    if every == "week":
        return (day - began).days % 7 == 0
    is_day = day.day == began.day or (is_last(day) and day.day < began.day)
    return is_day and (every == "month" or day.month == began.month)


def expected(first_at, every, zone):
    """The times in UTC at which the series has a bill, by walking over the year's local days."""
    first = first_at.astimezone(zone)
    times = []
    for days in range(1, 367):
        day = first.replace(tzinfo=None) + timedelta(days=days)
        if is_begun(first, every, day):
            # The first minute that the clocks show at or after this time of this day.
            at = day.replace(tzinfo=zone).astimezone(UTC) - timedelta(hours=3)
            while at.astimezone(zone).replace(tzinfo=None) < day:
                at += timedelta(minutes=1)
            times.append(at)
    return [at for at in times if at <= BEGIN + YEAR]


@pytest.fixture
def shop(open_shops, clock):
    clock.at = BEGIN
    return open_shops()


def made_shop(shop, chance):
    """The series of each merchant, with what the calendar expects of it."""
    merchants = [shop.merchant_id, *(shop.add_merchant(name) for name in ZONES[1:])]
    for merchant_id, zone in zip(merchants, ZONES, strict=True):
        shop.sql(f"UPDATE merchant SET timezone = '{zone}' WHERE id = {merchant_id}")  # noqa: S608
    wanted = {}
    for _ in range(SERIES):
        owner, zone = chance.choice(list(zip(merchants, ZONES, strict=True)))
        minutes = chance.choice(
            [chance.randrange(60 * 24 * 35), chance.randrange(24) * 60 + 30]
        )
        shop.clock.at = BEGIN + timedelta(minutes=minutes)
        shop.merchant_id = owner
        every = chance.choice(("week", "month", "month", "year"))
        bill = new_bill(shop, every=every, due_days=chance.randrange(30))
        wanted[bill.id] = expected(shop.clock(), every, ZoneInfo(zone))
    return wanted


def turn(shop):
    on_check(shop.service.db, shop.service.settings, shop.clock())


def killed_turn(shop, chance, monkeypatch):
    """A turn that dies after some bills, between what a renewal writes."""
    left = [chance.randrange(1, 4)]
    add = actions._add

    def dying(*args):
        left[0] -= 1
        if not left[0]:
            raise Killed
        return add(*args)

    with monkeypatch.context() as patched:
        patched.setattr(actions, "_add", dying)
        try:
            turn(shop)
        except Killed:
            return


def play(shop, chance, monkeypatch):
    shop.clock.at = BEGIN + timedelta(days=35)
    while shop.clock.at < BEGIN + YEAR:
        how = chance.random()
        if how < 0.02:
            shop.clock.move(days=7)  # an outage
        elif how < 0.05:
            shop.clock.move(hours=-chance.randrange(1, 48))  # the clock is set back
        else:
            shop.clock.move(hours=chance.randrange(1, 12))
        shop.clock.at = min(shop.clock.at, BEGIN + YEAR)
        if how > 0.9:
            at_once(3, lambda _: turn(shop))
        elif how > 0.7:
            killed_turn(shop, chance, monkeypatch)
        else:
            turn(shop)
    turn(shop)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_year_has_exactly_the_bills_that_a_calendar_says(shop, monkeypatch, seed):
    chance = random.Random(seed)
    wanted = made_shop(shop, chance)
    play(shop, chance, monkeypatch)
    bills = all_bills(shop)
    found = Counter(bill.series_id for bill in bills)
    assert {id: found[id] - 1 for id in wanted} == {
        id: len(at) for id, at in wanted.items()
    }
    for bill in bills:
        if bill.number:
            began = to_ms(wanted[bill.series_id][bill.number - 1])
            assert began <= bill.created_ms, bill
    db = shop.service.db
    assert db.rows(queries.TO_RENEW, now=to_ms(shop.clock())) == []
    assert (
        len({(bill.series_id, bill.number) for bill in bills})
        == len(bills)
        > SERIES * 5
    )
