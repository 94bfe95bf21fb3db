"""Refunds in the books: negative sums on the day of its block, labels for the wallet."""

import csv
import io

import pytest

from tests.support.fake_esplora import Terminal
from tests.support.shop_refunds import address, made, paid, sent

pytestmark = pytest.mark.both_databases


@pytest.fixture
def invoice(till):
    """The refund of a paid invoice, sent a day later, when a bitcoin is worth 60,000 dollars."""
    invoice = paid(till, description="a coat")
    till.clock.move(days=1)
    sent(till, made(till, invoice, 10_000, address(1)))
    made(till, invoice, 600)
    return invoice


def test_a_refund_is_a_row_of_negative_sums_at_its_worth_on_its_day(till, invoice):
    text = Terminal(till).run("export", "payments")[0]
    came, back = csv.DictReader(io.StringIO(text, newline=""))
    assert came["amount_sats"] == str(invoice["amount_sats"])
    assert (back["amount_sats"], back["amount_btc"]) == ("-10000", "-0.00010000")
    assert (back["value_at_receipt"], back["usd_at_quote"]) == ("-6.00", "-6.00")
    assert back["invoice_id"] == invoice["id"] and back["description"] == "returned"
    assert back["day"] > came["day"] and back["payment_id"].startswith("rfd_")
    rows = Terminal(till).json("export", "payments")
    assert [row["amount_sats"] for row in rows] == [invoice["amount_sats"], -10_000]
    days = ("--from", back["day"], "--to", back["day"] + "T23:59:59Z")
    (only,) = Terminal(till).json("export", "payments", *days)
    assert only["value_at_receipt"] == -6


def test_the_transaction_and_the_coins_that_it_spent_have_a_label(till, invoice):
    lines = Terminal(till).run("export", "labels")[0].splitlines()
    labels = [line for line in lines if "Refund returned" in line]
    assert len(labels) >= 2 and '"type":"tx"' in labels[0] and ':0"' in labels[1]
    assert all('"type":"input"' in line for line in labels[1:])


def test_what_was_not_sent_is_in_no_book(till, invoice):
    till.sandbox.chain.reorganise(1, till.now)
    till.check()
    (only,) = Terminal(till).json("export", "payments")
    assert only["amount_sats"] > 0
    assert "Refund" not in Terminal(till).run("export", "labels")[0]
