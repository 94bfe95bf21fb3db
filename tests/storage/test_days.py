"""Income by day: the days of the merchant's time zone, whatever it was or becomes."""

from datetime import UTC, datetime
from threading import Thread

import pytest

from btcpay.merchants.merchants import set_timezone
from btcpay.sandbox.payer.wallet import double_spends
from storage.queries.totals import days
from tests.support.builders import pay, until
from tests.support.databases import about_sqlite, plan, raw, tables, waits_for_lock
from tests.support.dying import run_until_death
from tests.support.fake_esplora import Terminal
from tests.support.scenes import assert_days

pytestmark = pytest.mark.both_databases

MOMENTS = [
    datetime.fromisoformat(f"{at}+00:00")
    for at in (
        *(
            "2011-12-29T09:59:59.999",
            "2011-12-30T09:59:59.999",
            "2011-12-30T10:00",
        ),  # Apia's skip
        *(
            "2026-03-28T22:59:59.999",
            "2026-03-28T23:00",
            "2026-03-29T21:59:59.999",
        ),  # 23 hours
        *(
            "2026-10-24T21:59:59.999",
            "2026-10-24T22:00",
            "2026-10-25T22:59:59.999",
        ),  # 25 hours
        *("2026-12-31T23:59:59.999", "2027-01-01T00:00", "2027-01-01T18:15"),
    )
]
ZONES = (
    "Europe/Berlin",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "UTC",
)


def rows(shop):
    with raw(shop.environ["BLOCKTILL_DATABASE_URL"]) as connection:
        return tables(connection)


def of_days(shop):
    """The number of payments of each day that has any."""
    kept = rows(shop)["merchant_day"]
    return {(row["day"], row["currency"]): row["payments"] for row in kept}


def test_another_zone_counts_all_days_again_and_later_payments_by_it(shop, clock):
    blocktill = Terminal(shop)
    other = shop.post(
        "/invoices", {"amount_usd": 1}, shop.issue("write", shop.add_merchant("b"))
    )
    pay(shop, other.json, mined_at=MOMENTS[0])
    assert blocktill.json("merchant", "timezone", "shop") == [
        {"merchant": "shop", "timezone": "UTC"}
    ]
    for at in MOMENTS:
        clock.at = at
        pay(shop, shop.invoice(1), EUR="50000")
    for number, zone in enumerate(ZONES):
        for at in MOMENTS[number :: len(ZONES)]:
            clock.at = at
            pay(shop, shop.invoice(1), EUR="50000")
        assert_days(rows(shop))
        answer = [{"merchant": "shop", "timezone": zone}]
        assert blocktill.json("merchant", "timezone", "shop", zone.lower()) == answer
        assert_days(rows(shop))
    refused = blocktill.run("merchant", "timezone", "shop", "Berlin", status=1)[1]
    assert "'Berlin' is not a time zone such as Europe/Berlin" in refused
    assert blocktill.json("merchant", "timezone", "shop") == answer


def test_who_is_killed_while_days_are_counted_again_has_changed_nothing(shop):
    for at in MOMENTS:
        pay(shop, shop.invoice(), mined_at=at)
    before = rows(shop)
    run_until_death(1, "merchant", "timezone", "shop", "Asia/Kathmandu", **shop.environ)
    after = rows(shop)
    assert [after[name] for name in ("merchant", "merchant_day")] == [
        before[name] for name in ("merchant", "merchant_day")
    ]
    Terminal(shop).run("merchant", "timezone", "shop", "Asia/Kathmandu")
    assert_days(rows(shop))


def test_a_payment_beside_a_change_of_zone_is_counted_once(shop):
    """The second of the two waits, so the zone never changes while a payment is being made."""
    db = shop.service.db
    url = shop.environ["BLOCKTILL_DATABASE_URL"]
    late = datetime(2026, 1, 1, 20, tzinfo=UTC)  # the next day in Kathmandu
    invoice = shop.invoice()
    change = Thread(target=set_timezone, args=(db, shop.merchant_id, "Asia/Kathmandu"))

    with db.write():
        pay(shop, invoice, mined_at=late)
        change.start()
        until(
            lambda: waits_for_lock(url) or not change.is_alive(), "the change to wait"
        )
        assert change.is_alive()
    change.join()
    assert_days(rows(shop))
    assert [row["payments"] for row in rows(shop)["merchant_day"]] == [1]


@pytest.mark.parametrize("changed", ["timezone", "currency"])
def test_what_is_taken_back_after_a_change_leaves_the_day_and_the_currency_that_it_came_in(
    till, changed
):
    till.shop.sql("UPDATE merchant SET currency = 'EUR'")
    kept = till.shop.invoice()
    undone = till.shop.invoice()
    for invoice in (kept, undone):
        till.confirm(invoice)
    assert sum(of_days(till.shop).values()) == 2
    if changed == "timezone":
        set_timezone(till.shop.service.db, till.shop.merchant_id, "Pacific/Apia")
    else:
        till.shop.sql("UPDATE merchant SET currency = 'JPY'")
    till.sandbox.chain.reorganise(1, till.now, double_spends(till.sandbox.wallet, 1))
    till.check()
    (row,) = rows(till.shop)["merchant_day"]
    assert (row["payments"], row["currency"]) == (1, "EUR")
    assert_days(rows(till.shop))


@about_sqlite
def test_days_are_counted_again_by_the_index_on_merchant_and_time(shop):
    """A stretch at a time: a million payments take a second or two."""
    for query in (days._COUNT, days._SPAN):
        assert "payment_newest (merchant_id=?" in plan(shop.service.db, query)
