"""A shop in Berlin that counts in euros, and from June on in francs, through a year.

What the CSV, its months and the chart say is computed here from each payment by itself, with a
table of the year's two changes of clocks in place of a time zone database.
"""

import csv
import io
import random
import re
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest

from btcpay.merchants.merchants import set_currency, set_timezone
from tests.support.builders import pay
from tests.support.fake_esplora import Terminal

pytestmark = pytest.mark.both_databases

MS = timedelta(milliseconds=1)
SUMMER = [
    datetime(2026, month, day, 1, tzinfo=UTC) for month, day in ((3, 29), (10, 25))
]
FRANCS_FROM = datetime(2026, 6, 15, 10, tzinfo=UTC)
# Midnights in Berlin, the hour that comes twice, and both sides of the change of currency.
SPECIAL = [
    *(datetime(2026, 3, day, 23, tzinfo=UTC) for day in (27, 28)),
    *(datetime(2026, 3, day, 22, tzinfo=UTC) for day in (29, 30)),
    *(datetime(2026, 10, day, 22, tzinfo=UTC) for day in (23, 24)),
    *(datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1, 22)),
    *(datetime(2026, 10, day, 23, tzinfo=UTC) for day in (25, 26)),
    *(datetime(2026, 2, 28, 23, tzinfo=UTC), datetime(2026, 12, 31, 23, tzinfo=UTC)),
    FRANCS_FROM,
]


def moments(chance):
    """Each special one and the millisecond before it, and a few in every month."""
    found = {at - delta for at in SPECIAL for delta in (MS, 0 * MS)}
    for month in range(1, 13):
        first = datetime(2026, month, 1, tzinfo=UTC)
        found |= {
            first + timedelta(seconds=chance.randrange(28 * 86_400)) for _ in range(2)
        }
    return sorted(found)


def day_in_berlin(at):
    hours = 2 if SUMMER[0] <= at < SUMMER[1] else 1
    return (at + timedelta(hours=hours)).date()


def minor_units(sats, price):
    """The exact product in cents, half to even."""
    return round(Fraction(sats) * Fraction(price) / 10**8 * 100)


def totals(payments, first=date.min, last=date.max):
    """By currency and day: how many of the (day, currency, cents) there are, and their cents."""
    found = defaultdict(lambda: (0, 0))
    for day, currency, cents in payments:
        if first <= day <= last:
            many, sum = found[currency, day]
            found[currency, day] = (many + 1, sum + cents)
    return dict(found)


def chart(source):
    """The tables under the charts, in the form of `totals`."""
    found = {}
    parts = re.split(r"<h2>Day by day, in (\w+)</h2>", source)
    for currency, html in zip(parts[1::2], parts[2::2], strict=True):
        row = r'<time datetime="([\d-]{10})">.*?>(\d+) payments?<.*?"sum">[^\d<]*([\d.,]+)'
        for day, many, value in re.findall(row, html, re.S):
            cents = int(re.sub(r"\D", "", value))
            found[currency, date.fromisoformat(day)] = (int(many), cents)
    return found


def of_lines(text):
    """The same of a CSV."""
    names = ("day", "currency", "value_at_receipt")
    lines = (
        [it[name] for name in names]
        for it in csv.DictReader(io.StringIO(text, newline=""))
    )
    return totals(
        (date.fromisoformat(day), currency, int((value or "0").replace(".", "")))
        for day, currency, value in lines
    )


@pytest.mark.slow
def test_csv_months_and_chart_agree_with_the_payments_one_by_one(shop, browser, clock):
    chance = random.Random(24)
    payments = []
    blocktill = Terminal(shop)
    db = shop.service.db
    owner = shop.merchant_id
    clock.at = datetime(2026, 1, 1, tzinfo=UTC)
    set_timezone(db, owner, "Europe/Berlin")
    set_currency(db, owner, "EUR")
    month = 1
    for at in moments(chance):
        if at >= FRANCS_FROM:
            set_currency(db, owner, "CHF")
        while month < at.month:
            month = assert_month(month, payments, blocktill, browser, clock)
        clock.at = at
        currency = "CHF" if at >= FRANCS_FROM else "EUR"
        sats = chance.randint(1, 10**7)
        price = f"{chance.randint(10**6, 10**7) / 100:.2f}"
        known = {} if chance.random() < 0.1 else {currency: price}
        pay(shop, shop.invoice(), sats, USD="60000", **known)
        cents = minor_units(sats, price) if known else 0
        payments.append((day_in_berlin(at), currency, cents))
    clock.at = datetime(2027, 1, 1, 12, tzinfo=UTC)
    assert_month(12, payments, blocktill, browser, clock)
    everything = totals(payments)
    assert of_lines(blocktill.run("export", "payments")[0]) == everything
    assert {day.year for _, day in everything} == {2026, 2027}
    # Once more in a year of 24 hours a day, and back: no payment has moved.
    set_timezone(db, owner, "UTC")
    set_timezone(db, owner, "Europe/Berlin")
    browser.log_in()
    assert_chart(payments, browser, clock)


def assert_month(month, payments, blocktill, browser, clock):
    """The takings of the month by the CSV, and by the chart at its end; the next month."""
    first = date(2026, month, 1)
    next = date(2026 + month // 12, month % 12 + 1, 1)
    text = blocktill.run("export", "payments", "--from", f"{first}", "--to", f"{next}")[
        0
    ]
    assert of_lines(text) == totals(payments, first, next - timedelta(days=1))
    clock.at = max(
        clock.at, datetime(next.year, next.month, 1, tzinfo=UTC) - timedelta(hours=6)
    )
    browser.log_in()
    assert_chart(payments, browser, clock)
    return month + 1


def assert_chart(payments, browser, clock):
    today = day_in_berlin(clock.at)
    page = browser.page()
    expected = totals(payments, today - timedelta(days=29), today)
    assert chart(page.source) == expected
    for currency in {currency for currency, _ in expected}:
        sums = [sum for (of, _), (_, sum) in expected.items() if of == currency]
        symbol = {"EUR": "\u20ac", "CHF": "CHF "}[currency]
        assert f"{symbol}{sum(sums) / 100:,.2f}" in page.texts["took-in-all"]
