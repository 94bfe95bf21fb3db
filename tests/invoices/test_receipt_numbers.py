"""Receipt numbers: each shop's own sequence without a gap; the tax that a receipt names."""

from decimal import Decimal

import pytest

from btcpay.merchants.merchants import set_brand
from btcpay.values.money import Money, Tax, tax_of
from storage.models import Invoice
from storage.statement import blank
from tests.support.builders import finish, pay
from tests.support.dying import run_until_death
from tests.support.fake_esplora import Terminal

pytestmark = pytest.mark.both_databases


def numbers(shop):
    """The receipt number of each invoice, in the order in which they were made."""
    rows = shop.sql("SELECT receipt_number FROM invoice ORDER BY seq").fetchall()
    return [number for (number,) in rows]


def paid_late(shop, many=1):
    """Invoices that wait for their owner's decision."""
    invoices = [shop.invoice(expires_in_hours=1) for _ in range(many)]
    shop.clock.move(hours=2)
    for invoice in invoices:
        pay(shop, invoice)
    return invoices


def settle(invoice):
    return "invoice", "settle", invoice["id"], "--reason", "good enough"


def test_each_shop_counts_its_paid_invoices_in_the_order_of_their_payment(shop):
    first, second, third = (shop.invoice() for _ in range(3))
    pay(shop, second)
    finish(shop, first, "canceled")
    pay(shop, third)
    assert numbers(shop) == [None, 1, 2]
    shop.merchant_id = shop.add_merchant("other")
    shop.write_key = shop.issue("write")
    pay(shop, shop.invoice())
    assert numbers(shop) == [None, 1, 2, 1]


def test_those_of_one_block_have_the_numbers_that_follow(till):
    invoices = [till.shop.invoice() for _ in range(5)]
    for invoice in reversed(invoices):
        till.pay(invoice)
    till.mine_and_check()
    assert sorted(numbers(till.shop)) == [1, 2, 3, 4, 5]


def test_an_invoice_keeps_its_number_through_a_reorganisation(till):
    undone = till.shop.invoice()
    till.confirm(undone)
    till.sandbox.chain.reorganise(1, till.now)
    till.check()
    assert till.look(undone)["status"] == "open" and numbers(till.shop) == [1]
    other = till.shop.invoice()
    till.pay(other)
    till.mine_and_check()
    assert till.look(undone)["status"] == "paid"
    assert numbers(till.shop) == [1, 2]


def test_nobody_else_gets_the_number_of_a_payment_that_was_taken_back_for_good(shop):
    gone = shop.invoice()
    pay(shop, gone)
    shop.sql(
        "UPDATE invoice SET status = 'canceled', paid_ms = NULL, tx_hash = NULL"
        " WHERE receipt_number = 1"
    )
    pay(shop, shop.invoice())
    assert numbers(shop) == [1, 2]


def test_processes_that_settle_at_once_give_each_number_once(shop):
    invoices = paid_late(shop, 6)
    terminal = Terminal(shop)
    processes = [terminal.start(*settle(invoice)) for invoice in invoices]
    assert [process.wait(60) for process in processes] == [0] * 6
    assert sorted(numbers(shop)) == [1, 2, 3, 4, 5, 6]


def test_a_process_that_dies_before_it_has_settled_takes_no_number(shop):
    killed, other = paid_late(shop, 2)
    run_until_death(1, *settle(killed), **shop.environ)
    assert numbers(shop) == [None, None]
    Terminal(shop).run(*settle(other))
    Terminal(shop).run(*settle(killed))
    assert numbers(shop) == [2, 1]


# What the database refuses, and the kind of rule that does.
REFUSED = {
    "one number on two receipts": ("receipt_number = 1", "unique"),
    "a paid invoice without a number": ("receipt_number = NULL", "check"),
    "a number below one": ("receipt_number = -receipt_number", "check"),
    "a tax without a number": (
        "tax_percent = '19', receipt_number = NULL, status = 'expired', paid_ms = NULL,"
        " tx_hash = NULL",
        "check",
    ),
}


@pytest.mark.parametrize(("change", "rule"), REFUSED.values(), ids=REFUSED)
def test_the_database_refuses(shop, change, rule):
    for _ in range(2):
        pay(shop, shop.invoice())
    with pytest.raises(Exception, match=f"(?i){rule}"):
        shop.sql(f"UPDATE invoice SET {change}")  # noqa: S608
    assert numbers(shop) == [1, 2]


def test_a_receipt_names_the_tax_of_the_time_when_it_was_first_paid(till):
    def set_tax(percent):
        set_brand(till.shop.service.db, till.shop.merchant_id, {"tax_percent": percent})

    before, paid = till.shop.invoice(), till.shop.invoice()
    pay(till.shop, before)
    set_tax("19")
    till.confirm(paid)
    set_tax("7")
    till.sandbox.chain.reorganise(1, till.now)
    till.check()
    till.mine_and_check()
    assert till.look(paid)["status"] == "paid"
    pay(till.shop, till.shop.invoice())
    rows = till.shop.sql("SELECT tax_percent FROM invoice ORDER BY seq").fetchall()
    assert [percent for (percent,) in rows] == [None, "19", "7"]


# Amount, currency, gratuity, rate; and the tax.
TAXES = {
    "a price of 25 with 19 %": ("25", "EUR", None, "19", "3.99"),
    "a rate with a decimal": ("107.70", "CHF", None, "7.7", "7.70"),
    "a rate of three decimals": ("100", "USD", None, "8.875", "8.15"),
    "half a cent is rounded up": ("0.05", "EUR", None, "100", "0.03"),
    "less than half a cent is none": ("0.02", "EUR", None, "19", "0.00"),
    "a currency without decimals": ("1100", "JPY", None, "10", "100"),
    "a currency with three": ("1.050", "KWD", None, "5", "0.050"),
    "the tip is not taxed": ("27.50", "EUR", "2.50", "19", "3.99"),
    "all of it twice": ("30", "EUR", "0", "100", "15.00"),
}


@pytest.mark.parametrize(
    ("amount", "currency", "gratuity", "rate", "tax"), TAXES.values(), ids=TAXES
)
def test_the_tax_in_a_price(amount, currency, gratuity, rate, tax):
    row = blank(
        Invoice, amount=amount, currency=currency, gratuity=gratuity, tax_percent=rate
    )
    assert tax_of(row) == Tax(Decimal(rate), Money(Decimal(tax), currency))


def test_a_price_without_a_rate_has_no_tax():
    assert tax_of(blank(Invoice, amount="25", currency="EUR")) is None
