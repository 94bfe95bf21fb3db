"""The check against a real chain over real HTTP: pay, mine, look, and see what became of it."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from builders import Clock, TickerServer
from fake_esplora import Till, open_till

from btcpay.invoices.events import finish
from btcpay.sandbox.payer.mischief import replace
from storage.queries import invoices


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[Till]:
    with open_till(tmp_path, ticker, clock) as opened:
        yield opened


def cancel(till: Till, invoice: dict) -> None:
    """What `btcpay invoice cancel` does."""
    row = till.shop.service.db.only(invoices.WHOLE, id=invoice["id"])
    finish(till.shop.service.db, row, till.clock(), status="canceled", reason="test")


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_an_invoice_paid_in_full_is_paid_when_its_block_comes(till):
    invoice = till.shop.invoice()
    till.clock.move(minutes=5)
    txid = till.pay(invoice)
    assert till.check().changed == {}
    assert till.look(invoice)["status"] == "open" and till.payments() == []
    till.clock.move(minutes=5)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    paid = till.look(invoice)
    assert (paid["status"], paid["tx_hash"]) == ("paid", txid)
    assert instant(paid["paid_at"]) == till.clock()
    (payment,) = till.payments(invoice)
    assert (payment["amount_sats"], payment["tx_hash"]) == (invoice["amount_sats"], txid)
    assert (payment["created_at"], payment["amount_usd_at_receipt"]) == (paid["paid_at"], 25.0)
    assert till.kinds(invoice) == ["seen", "moved", "payment", "paid"]


def test_a_part_is_a_payment_without_invoice_until_the_rest_comes(till):
    invoice = till.shop.invoice()
    first = till.pay(invoice, 10_000)
    till.mine()
    till.check()
    assert till.look(invoice)["status"] == "open" and till.payments(invoice) == []
    assert [(p["amount_sats"], p["invoice_id"]) for p in till.payments()] == [(10_000, None)]
    assert till.balance() == (10_000, 10_000)
    rest = till.pay(invoice, invoice["amount_sats"] - 10_000)
    till.mine()
    till.check()
    assert till.look(invoice)["tx_hash"] == rest
    assert {p["tx_hash"] for p in till.payments(invoice)} == {first, rest}
    assert till.balance() == (invoice["amount_sats"], invoice["amount_sats"])


def test_one_satoshi_short_stays_open_and_the_least_that_can_be_sent_pays(till):
    invoice = till.shop.invoice()
    till.pay(invoice, invoice["amount_sats"] - 1)
    till.mine()
    assert till.check().changed == {}
    last = till.pay(invoice, 294)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert till.look(invoice)["tx_hash"] == last


def test_more_than_asked_pays_and_the_payment_shows_what_came(till):
    invoice = till.shop.invoice()
    till.pay(invoice, invoice["amount_sats"] + 999)
    till.mine()
    till.check()
    assert till.look(invoice)["status"] == "paid"
    assert [p["amount_sats"] for p in till.payments(invoice)] == [invoice["amount_sats"] + 999]


def test_paid_twice_is_paid_once_and_the_second_is_a_payment_without_invoice(till):
    invoice = till.shop.invoice()
    first = till.pay(invoice)
    till.mine()
    till.check()
    second = till.pay(invoice)
    till.mine()
    till.check()
    assert till.look(invoice)["tx_hash"] == first
    assert [p["tx_hash"] for p in till.payments(invoice)] == [first]
    assert {(p["tx_hash"], p["invoice_id"]) for p in till.payments()} == {
        (first, invoice["id"]),
        (second, None),
    }


def test_an_invoice_expires_at_the_first_look_after_its_deadline_not_before(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(minutes=59, seconds=59)
    assert till.check().changed == {}
    till.clock.move(seconds=1)
    assert till.look(invoice)["status"] == "open"
    assert till.check().changed == {invoice["id"]: "expired"}
    assert till.look(invoice)["status"] == "expired"


def test_late_money_is_a_payment_without_invoice_and_in_the_balance(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(minutes=61)
    till.pay(invoice)
    till.mine()
    assert till.check().changed == {invoice["id"]: "expired"}
    assert till.payments(invoice) == []
    assert [p["invoice_id"] for p in till.payments()] == [None]
    assert till.balance() == (invoice["amount_sats"],) * 2


def test_money_seen_in_time_may_confirm_after_the_deadline(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(minutes=59)
    till.pay(invoice)
    till.check()
    till.clock.move(hours=5)
    assert till.check().changed == {}
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}


def test_a_block_before_the_deadline_pays_although_nobody_looked_in_time(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(minutes=59)
    till.pay(invoice)
    till.mine()
    till.clock.move(hours=5)
    assert till.check().changed == {invoice["id"]: "paid"}


def test_money_after_a_cancel_is_a_payment_without_invoice(till):
    invoice = till.shop.invoice()
    cancel(till, invoice)
    till.pay(invoice)
    till.mine()
    assert till.check().changed == {}
    assert till.look(invoice)["status"] == "canceled"
    assert [p["invoice_id"] for p in till.payments()] == [None]


def test_two_outputs_of_one_transaction_are_one_payment(till):
    invoice = till.shop.invoice()
    half = invoice["amount_sats"] // 2
    txid = till.pay_outputs((invoice, half), (invoice, invoice["amount_sats"] - half))
    till.mine()
    till.check()
    (payment,) = till.payments(invoice)
    assert (payment["tx_hash"], payment["amount_sats"]) == (txid, invoice["amount_sats"])


def test_one_transaction_can_pay_two_invoices_each_with_its_own_output(till):
    one, two = till.shop.invoice(25), till.shop.invoice(50)
    txid = till.pay_outputs((one, one["amount_sats"]), (two, two["amount_sats"]))
    till.mine()
    till.check()
    for invoice in (one, two):
        assert till.look(invoice)["tx_hash"] == txid
        assert [p["amount_sats"] for p in till.payments(invoice)] == [invoice["amount_sats"]]
    assert till.balance()[0] == one["amount_sats"] + two["amount_sats"]


def test_change_and_other_peoples_outputs_are_not_counted(till):
    invoice, other = till.shop.invoice(), till.shop.invoice()
    till.pay_outputs((invoice, 600), (other, other["amount_sats"]))
    till.mine()
    till.check()
    assert (till.look(invoice)["status"], till.look(other)["status"]) == ("open", "paid")
    assert till.balance()[0] == 600 + other["amount_sats"]


def test_six_confirmations_are_waited_for_where_the_amount_asks_for_them(open_deep):
    till = open_deep
    small, large = till.shop.invoice(99.99), till.shop.invoice(100)
    till.pay(small), till.pay(large)
    till.mine()
    assert till.check().changed == {small["id"]: "paid"}
    till.mine(4)
    assert till.check().changed == {}
    assert till.balance() == (small["amount_sats"], small["amount_sats"] + large["amount_sats"])
    till.mine()
    assert till.check().changed == {large["id"]: "paid"}


@pytest.fixture
def open_deep(tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[Till]:
    with open_till(tmp_path, ticker, clock, BTCPAY_CONFIRMATIONS="1 6@100") as opened:
        yield opened


def test_a_replacement_that_pays_the_same_pays_once(till):
    invoice = till.shop.invoice()
    first = till.pay(invoice)
    till.check()
    second = replace(till.sandbox.wallet, till.now, first)
    till.mine()
    till.check()
    assert till.look(invoice)["tx_hash"] == second
    assert [p["tx_hash"] for p in till.payments()] == [second]
    assert till.balance() == (invoice["amount_sats"],) * 2
    assert "vanished" in till.kinds(invoice)


def test_a_payment_replaced_away_is_forgotten_as_money_and_kept_as_history(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    txid = till.pay(invoice)
    till.check()
    assert till.balance() == (0, invoice["amount_sats"])
    replace(till.sandbox.wallet, till.now, txid, away=True)
    till.mine()
    till.check()
    assert till.balance() == (0, 0) and till.payments() == []
    assert till.kinds(invoice) == ["seen", "vanished"]
    till.clock.move(hours=1)
    assert till.check().changed == {invoice["id"]: "expired"}


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
    till.check()
    assert [p["amount_usd_at_receipt"] for p in till.payments(invoice)] == [usd]


def test_without_a_price_an_invoice_is_paid_all_the_same(till, ticker):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    ticker.status = 503
    assert till.check().changed == {invoice["id"]: "paid"}
    assert [p["amount_usd_at_receipt"] for p in till.payments(invoice)] == [None]


def test_no_price_is_asked_for_while_nothing_has_confirmed(till, ticker):
    invoice = till.shop.invoice()
    till.pay(invoice)
    asked = ticker.asked
    till.check()
    assert ticker.asked == asked
    till.mine()
    till.check()
    assert ticker.asked == asked + 1


@pytest.mark.parametrize(
    ("age", "watched"),
    [
        pytest.param(
            {"hours": 167, "minutes": 59, "seconds": 59}, True, id="until a second before"
        ),
        pytest.param({"hours": 168}, False, id="not from the hour itself"),
    ],
)
def test_a_finished_invoice_is_watched_for_a_week(till, age, watched):
    invoice = till.shop.invoice()
    cancel(till, invoice)
    till.clock.move(**age)
    till.pay(invoice)
    till.mine()
    assert (till.watched() == [invoice["id"]]) is watched
    till.check()
    assert len(till.payments()) == int(watched)


def test_an_open_invoice_without_a_deadline_is_watched_for_ever(till):
    invoice = till.shop.invoice()
    till.clock.move(days=4000)
    assert till.watched() == [invoice["id"]]


def test_money_on_its_way_is_watched_beyond_the_week(till):
    invoice = till.shop.invoice()
    cancel(till, invoice)
    till.pay(invoice)
    till.check()
    till.clock.move(days=30)
    till.mine()
    assert till.watched() == [invoice["id"]]
    till.check()
    assert len(till.payments()) == 1
    assert till.watched() == []


def test_the_longest_unseen_address_comes_first(till):
    old, middle, new = (till.shop.invoice() for _ in range(3))
    till.checker().run([old["id"]])
    till.clock.move(seconds=1)
    till.checker().run([middle["id"]])
    assert till.watched() == [new["id"], old["id"], middle["id"]]


def test_with_a_tolerance_a_little_less_pays(tmp_path, ticker, clock):
    tolerance = {"BTCPAY_UNDERPAYMENT_TOLERANCE_PERCENT": "1"}
    with open_till(tmp_path, ticker, clock, **tolerance) as till:
        enough, short = till.shop.invoice(60), till.shop.invoice(60)
        till.pay(enough, 99_000), till.pay(short, 98_999)
        till.mine()
        assert till.check().changed == {enough["id"]: "paid"}


def test_of_two_payments_in_one_block_the_first_in_the_block_pays(till):
    for _ in range(6):
        invoice = till.shop.invoice()
        half = -(-invoice["amount_sats"] // 2)
        first, second = till.pay(invoice, half), till.pay(invoice, half)
        full = till.pay(invoice)
        till.mine()
        assert till.check().changed == {invoice["id"]: "paid"}
        order = [tx.txid for tx in till.sandbox.chain.ledger.tip.txs[1:]]
        assert sorted(order) == sorted([first, second, full])
        settled = {payment["tx_hash"] for payment in till.payments(invoice)}
        paying = order[:1] if order[0] == full else order[:2]
        assert settled == set(paying) and till.look(invoice)["tx_hash"] == paying[-1]
