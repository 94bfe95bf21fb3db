"""A year of bills at once and no more; what series have made is undone by one command."""

from datetime import UTC, datetime, timedelta

import pytest

from btcpay.parts.bills import actions, undo
from btcpay.parts.bills.after_check import on_check
from btcpay.parts.bills.findings import findings
from btcpay.values.errors import ChangeRefused
from btcpay.values.times import to_ms
from tests.support.bills import EMAIL, all_bills, bill_now, mails_of, new_bill, pay_now
from tests.support.builders import pay
from tests.support.fake_esplora import Terminal

pytestmark = pytest.mark.both_databases
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def shop(open_shops, clock):
    clock.at = NOON
    return open_shops()


def turn(shop):
    on_check(shop.service.db, shop.service.settings, shop.clock())


def bills(shop):
    """Number and status of each, in the order in which they were made."""
    made = sorted(all_bills(shop), key=lambda bill: bill.seq)
    return [(bill.number, bill.status) for bill in made]


def red(shop):
    return [
        one.remedy
        for one in findings(shop.service.settings, shop.service.db, shop.clock())
    ]


def undo_since(shop, series, since):
    return undo.undo(
        shop.service.db, shop.service.settings, series.id, since, shop.clock()
    )


def resume(shop, series, skip=False):
    return undo.resume(shop.service.db, series.id, shop.clock(), skip)


@pytest.mark.parametrize(("every", "most"), [("week", 52), ("month", 12), ("year", 1)])
def test_a_turn_makes_a_years_bills_of_a_series_and_asks_about_the_others(
    shop, clock, every, most
):
    series = new_bill(shop, every=every)
    other = new_bill(shop)
    clock.move(days=20 * 366)
    for _ in range(3):
        turn(shop)
    assert len(all_bills(shop)) == 2 + most
    (remedy,) = red(shop)
    assert f"blocktill bill resume {series.id}" in remedy
    resume(shop, series)
    turn(shop), turn(shop)
    assert len(all_bills(shop)) == 2 + 2 * most and red(shop)
    with pytest.raises(ChangeRefused):
        resume(shop, other)


def test_a_year_of_bills_that_is_all_is_not_asked_about(shop, clock):
    new_bill(shop, every="month", until=(NOON + timedelta(days=365)).date())
    clock.move(days=900)
    turn(shop)
    assert len(all_bills(shop)) == 13 and red(shop) == []


def test_a_series_that_is_held_may_pass_over_what_it_missed(shop, clock):
    series = new_bill(shop, every="month")
    clock.at = datetime(2028, 2, 10, tzinfo=UTC)
    turn(shop)
    assert resume(shop, series, skip=True).renews_ms == to_ms(
        datetime(2028, 2, 29, 12, tzinfo=UTC)
    )
    turn(shop)
    assert len(all_bills(shop)) == 13 and red(shop) == []
    clock.at = datetime(2028, 2, 29, 12, tzinfo=UTC)
    turn(shop)
    assert all_bills(shop)[-1].number == 25


def test_a_series_that_is_held_can_be_ended(shop, clock):
    series = new_bill(shop, every="week")
    clock.move(days=800)
    turn(shop)
    actions.end(shop.service.db, shop.service.settings, series.id, clock())
    assert red(shop) == []


def test_what_2099_has_made_is_undone_and_each_period_comes_in_its_time(shop, clock):
    series = new_bill(shop, every="week", customer_email=EMAIL)
    clock.move(days=8)
    turn(shop)
    began = clock.at
    mails = mails_of(shop)

    clock.at = datetime(2099, 1, 1, tzinfo=UTC)
    turn(shop)
    invoice = pay_now(shop, all_bills(shop)[-1])
    assert len(all_bills(shop)) == 54 and mails_of(shop) != mails

    clock.at = began + timedelta(days=1)
    done = undo_since(shop, series, began + timedelta(hours=1))
    assert (len(done.ids), done.kept_ids, red(shop)) == (52, [], [])
    assert bills(shop) == [
        (0, "open"),
        (1, "open"),
        *((n, "ended") for n in range(2, 54)),
    ]
    assert mails_of(shop) == mails
    assert shop.get(f"/invoices/{invoice['id']}").json["status"] == "canceled"
    turn(shop)
    assert len(all_bills(shop)) == 54
    clock.move(days=6)
    turn(shop), turn(shop)
    assert bills(shop)[54:] == [(2, "open")]
    assert undo_since(shop, series, clock.at + timedelta(hours=1)).ids == []


def test_a_series_whose_last_day_was_passed_goes_back_and_one_that_was_ended_does_not(
    shop, clock
):
    until = datetime(2026, 4, 30, tzinfo=UTC).date()
    over, ended = (new_bill(shop, every="month", until=until) for _ in range(2))
    clock.move(days=3000)
    turn(shop)
    clock.at = NOON + timedelta(days=1)
    actions.end(shop.service.db, shop.service.settings, ended.id, clock())
    for series in (over, ended):
        assert len(undo_since(shop, series, NOON + timedelta(hours=1)).ids) == 3
    assert bill_now(shop, over).renews_ms == to_ms(
        datetime(2026, 2, 28, 12, tzinfo=UTC)
    )
    assert bill_now(shop, over).renews == 1
    assert bill_now(shop, ended).renews_ms is not None


def test_a_bill_that_something_has_come_to_stays_and_its_period_has_no_second_one(
    shop, clock
):
    series = new_bill(shop, every="week")
    clock.move(days=30)
    turn(shop)
    made = all_bills(shop)
    pay(shop, pay_now(shop, made[2]))
    pay(shop, pay_now(shop, made[3]), 1000)
    done = undo_since(shop, series, clock.at)
    assert done.kept_ids == [made[3].id] and done.ids == [made[1].id, made[4].id]
    # Its periods have begun, so they are asked about rather than made again at once.
    turn(shop)
    assert len(all_bills(shop)) == 5 and len(red(shop)) == 1
    resume(shop, series)
    turn(shop)
    assert bills(shop) == [
        *((0, "open"), (1, "ended"), (2, "paid"), (3, "open"), (4, "ended")),
        *((1, "open"), (4, "open")),
    ]


def test_the_command_asks_undoes_and_goes_on(open_shops, clock):
    clock.at = datetime.now(UTC).replace(microsecond=0) - timedelta(days=800)
    shop = open_shops()
    series = new_bill(shop, every="month", customer_email=EMAIL)
    kept = new_bill(shop, every="month")
    clock.at = datetime.now(UTC).replace(microsecond=0)
    before = clock.at - timedelta(hours=1)
    terminal = Terminal(shop)
    turn(shop)
    words = [
        "bill",
        "undo",
        "--since",
        f"{before:%Y-%m-%dT%H:%M}",
        "--series",
        series.id,
    ]
    _, said = terminal.run(*words, status=1)
    assert "12" in said and len(all_bills(shop)) == 26
    output, _ = terminal.run(*words, "--yes")
    assert "12 bills are undone" in output
    assert [bill.number for bill in all_bills(shop) if bill.status == "open"] == [
        *(0, 0),
        *range(1, 13),
    ]
    lines = [one for one in terminal.json("doctor", status=1) if one["name"] == "bills"]
    assert {one["colour"] for one in lines} == {"red"} and len(lines) == 2
    terminal.run("bill", "resume", series.id, "--skip")
    terminal.run("bill", "resume", kept.id)
    assert terminal.json("bill", "undo", "--since", "2099-01-01T00:00Z", "--yes") == {
        "undone": [],
        "kept": [],
    }
    terminal.run("bill", "undo", "--since", "yesterday", "--yes", status=2)
