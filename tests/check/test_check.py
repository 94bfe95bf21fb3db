"""The check against a real chain over real HTTP: pay, mine, look, and see what became of it."""

import json
from datetime import datetime

import pytest

from btcpay.sandbox.payer.wallet import replace
from tests.support.builders import finish

pytestmark = pytest.mark.both_databases


def instant(text):
    return datetime.fromisoformat(text)


def test_an_invoice_paid_in_full_is_paid_when_its_block_comes(till):
    invoice = till.shop.invoice()
    till.clock.move(minutes=5)
    txid = till.pay(invoice)
    till.open_page(invoice)
    assert till.check().new_statuses == {}
    assert till.look(invoice)["status"] == "open" and till.payments() == []
    till.clock.move(minutes=5)
    assert till.mine_and_check().new_statuses == {invoice["id"]: "paid"}
    paid = till.look(invoice)
    assert (paid["status"], paid["tx_hash"]) == ("paid", txid)
    assert instant(paid["paid_at"]) == till.clock()
    (payment,) = till.payments(invoice)
    assert (payment["amount_sats"], payment["tx_hash"]) == (
        invoice["amount_sats"],
        txid,
    )
    assert (payment["created_at"], payment["amount_usd_at_receipt"]) == (
        paid["paid_at"],
        25.0,
    )
    assert till.kinds(invoice) == ["seen", "moved", "payment", "paid"]


def test_a_part_is_a_payment_without_invoice_until_the_rest_comes(till):
    invoice = till.shop.invoice()
    first = till.pay(invoice, 10_000)
    till.mine_and_check()
    assert till.look(invoice)["status"] == "open" and till.payments(invoice) == []
    assert [(p["amount_sats"], p["invoice_id"]) for p in till.payments()] == [
        (10_000, None)
    ]
    assert till.balance() == (10_000, 10_000)
    rest = till.pay(invoice, invoice["amount_sats"] - 10_000)
    till.mine_and_check()
    assert till.look(invoice)["tx_hash"] == rest
    assert {p["tx_hash"] for p in till.payments(invoice)} == {first, rest}
    assert till.balance() == (invoice["amount_sats"], invoice["amount_sats"])


def seen_waiting(till, invoice):
    """The transaction that pays it, which the check has seen in the mempool."""
    txid = till.pay(invoice)
    till.look_for(invoice)
    assert till.balance() == (0, invoice["amount_sats"])
    return txid


def test_a_block_that_spends_its_inputs_otherwise_ends_what_waits_without_a_look(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    replace(till.sandbox.wallet, till.now, seen_waiting(till, invoice), away=True)
    assert till.mine_and_check().looked_at == 0
    assert till.balance() == (0, 0) and till.payments() == []
    assert till.kinds(invoice) == ["seen", "vanished"]
    till.clock.move(hours=1)
    assert till.check().new_statuses == {invoice["id"]: "expired"}


@pytest.mark.parametrize(
    ("age", "usd"),
    [
        pytest.param({"minutes": 60}, 30.0, id="an hour old: the price of now"),
        pytest.param({"minutes": 60, "seconds": 1}, None, id="a second older: none"),
    ],
)
def test_a_receipt_is_worth_the_price_of_its_hour_or_nothing(till, ticker, age, usd):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.clock.move(**age)
    ticker.price("72000")
    asked_before = ticker.asked
    till.check()
    assert [p["amount_usd_at_receipt"] for p in till.payments(invoice)] == [usd]
    assert (ticker.asked > asked_before) == (
        usd is not None
    )  # nobody waits for what is of no use


CURRENCIES = {
    "euros": ("EUR", {"usd": "80000", "eur": "72000.00"}, "33.33", "30.00"),
    "dollars": ("USD", {"usd": "80000"}, "33.33", "33.33"),
    "yen have no decimals": (
        "JPY",
        {"usd": "60000", "jpy": "12000100"},
        "25.00",
        "5000",
    ),
    "dinars have three": ("KWD", {"usd": "60000", "kwd": "18432.10"}, "25.00", "7.680"),
    "no price in it is none, and not that in dollars": (
        "EUR",
        {"usd": "60000"},
        "25.00",
        None,
    ),
    "no price in dollars leaves that in it": ("EUR", {"eur": "72000"}, None, "30.00"),
}


@pytest.mark.parametrize("case", CURRENCIES)
def test_a_receipt_keeps_its_value_in_the_merchants_currency_of_that_moment(
    till, ticker, case
):
    currency, prices, usd, value = CURRENCIES[case]
    invoice = till.shop.invoice()
    till.shop.sql(f"UPDATE merchant SET currency = '{currency}'")  # noqa: S608
    till.pay(invoice)
    till.mine()
    ticker.body = json.dumps(prices).encode()
    till.clock.move(minutes=5)
    till.check()
    till.shop.sql("UPDATE merchant SET currency = 'CHF'")
    columns = "amount_usd_at_receipt, currency, value_at_receipt"
    kept = till.shop.sql(f"SELECT {columns} FROM payment").fetchall()  # noqa: S608
    assert [tuple(row) for row in kept] == [(usd, currency, value)]


def test_no_price_is_asked_for_while_nothing_has_confirmed(till, ticker):
    invoice = till.shop.invoice()
    till.pay(invoice)
    asked_before = ticker.asked
    assert till.look_for(invoice).looked_at == 1
    assert ticker.asked == asked_before
    till.mine_and_check()
    assert ticker.asked == asked_before + 1


@pytest.mark.parametrize(
    "days", [8, 4_000], ids=["a week after its end", "years after"]
)
def test_every_address_ever_issued_is_watched_for_ever(till, days):
    """For as long as blocks are read: while an invoice is open, or a coin lies there."""
    canceled = till.shop.invoice()
    _open = till.shop.invoice()
    finish(till.shop, canceled, "canceled")
    till.check()
    till.clock.move(days=days)
    till.confirm(canceled)
    (late,) = till.payments()
    assert (late["amount_sats"], late["invoice_id"]) == (canceled["amount_sats"], None)
    assert till.look(canceled)["status"] == "canceled"


def test_money_that_waits_has_every_block_read_until_it_is_in_one(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.look_for(invoice)
    finish(till.shop, invoice, "canceled")
    till.clock.move(days=30)
    till.mine_and_check()
    assert len(till.payments()) == 1


def test_with_a_tolerance_a_little_less_pays(open_tills):
    tolerance = {"BLOCKTILL_UNDERPAYMENT_TOLERANCE_PERCENT": "1"}
    till = open_tills(**tolerance)
    enough = till.shop.invoice(60)
    short = till.shop.invoice(60)
    till.pay(enough, 99_000), till.pay(short, 98_999)
    assert till.mine_and_check().new_statuses == {enough["id"]: "paid"}


def explorer_calls(till):
    """The number of calls in the totals."""
    sql = "SELECT COALESCE(SUM(total), 0) FROM tally WHERE name = 'explorer_calls'"
    return int(till.shop.sql(sql).fetchone()[0])


def looked_again(till, *pauses_s):
    """For each look after a run, True if somebody waited; so many seconds apart."""
    checker = till.checker()
    report = checker.run()
    checker.finish(report)
    found = []
    for pause_s in pauses_s:
        till.clock.move(seconds=pause_s)
        found.append(checker.look_again(report))
    return found


def test_after_a_run_who_waits_at_a_page_is_looked_for_again_and_nobody_else(till):
    paid = till.shop.invoice()
    other = till.shop.invoice()
    till.check()
    till.open_page(paid)
    till.pay(other)
    assert looked_again(till, 5) == [True] and till.kinds(paid) == []
    till.pay(paid)
    till.clock.move(seconds=1)
    assert looked_again(till, 10, 5) == [False, False]
    assert (till.kinds(paid), till.kinds(other)) == (["seen"], [])


def test_looks_after_a_run_are_counted_with_it(till):
    invoice = till.shop.invoice()
    till.check()
    till.open_page(invoice)
    before = explorer_calls(till)
    checker = till.checker()
    report = checker.run()
    checker.finish(report)
    for _ in range(3):
        till.clock.move(seconds=10)
        checker.look_again(report)
    assert report.looked_at == 4 and explorer_calls(till) - before == report.calls


def test_a_block_that_comes_after_the_run_is_read_when_the_mempool_no_longer_shows_a_payment(
    till,
):
    invoice = till.shop.invoice()
    till.check()
    till.open_page(invoice)
    till.pay(invoice, invoice["amount_sats"] // 2)
    checker = till.checker()
    report = checker.run()
    till.mine()
    till.clock.move(seconds=10)
    assert checker.look_again(report) and report.blocks_read == 1
    assert till.kinds(invoice) == ["seen", "moved", "payment"]


def test_nobody_is_looked_for_again_when_no_explorer_answers(till):
    invoice = till.shop.invoice()
    till.open_page(invoice)
    till.sandbox.switches.explorer = "down"
    assert looked_again(till, 10) == [False]
