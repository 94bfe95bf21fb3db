"""A paid bill is a receipt: its number in the shop's sequence, and its share of tax."""

import pytest

from btcpay.merchants.merchants import set_brand
from btcpay.parts.bills import mail
from tests.support.bills import EMAIL, bill_now, new_bill, page_of, pay_now, stands
from tests.support.payer import Page

pytestmark = pytest.mark.both_databases


def receipt_number(till, invoice):
    page = Page(till.shop.client.get(f"/pay/{invoice['id']}").text)
    return page.texts["receipt-number"]


def test_a_bill_has_the_number_of_the_payment_that_paid_it_and_keeps_it(till):
    shop = till.shop
    set_brand(shop.service.db, shop.merchant_id, {"tax_percent": "19"})
    till.confirm(shop.invoice())
    bill = new_bill(shop, "119")
    one, other = (pay_now(shop, bill, shop.app.test_client()) for _ in range(2))
    assert not {"receipt-number", "tax"} & page_of(shop.client, bill).texts.keys()
    till.confirm(one)
    page = page_of(shop.client, bill)
    assert page.texts["receipt-number"] == receipt_number(till, one) == "2"
    assert page.texts["tax"] == "Includes 19% tax: $19.00"
    assert page.source.count("$119.00") == 2  # the amount, and its one payment
    till.confirm(other)
    assert receipt_number(till, other) == "3"
    assert page_of(shop.client, bill).texts["receipt-number"] == "2"
    chain = till.sandbox.chain
    chain.reorganise(2, till.now)
    till.check()
    till.mine_and_check()
    assert page_of(shop.client, bill).texts["receipt-number"] == "2"


def test_a_bill_that_no_payment_settled_by_itself_has_the_next_number(till):
    """Less is missing than a wallet can send: the bill is paid, its invoice is not."""
    shop = till.shop
    till.confirm(shop.invoice())
    bill = new_bill(shop)
    invoice = pay_now(shop, bill)
    till.confirm(invoice, invoice["amount_sats"] - 100)
    assert stands(shop, bill)[0] == "paid" and till.look(invoice)["status"] == "open"
    assert page_of(shop.client, bill).texts["receipt-number"] == "2"
    till.confirm(sale := shop.invoice())
    assert receipt_number(till, sale) == "3"
    till.clock.move(hours=2)
    till.mine_and_check()
    assert page_of(shop.client, bill).texts["receipt-number"] == "2"


def test_its_mail_has_the_number_and_the_tax(till):
    shop = till.shop
    set_brand(shop.service.db, shop.merchant_id, {"tax_percent": "19"})
    bill = new_bill(shop, "119", customer_email=EMAIL)
    till.confirm(pay_now(shop, bill))
    db = shop.service.db
    about = f"{bill.id} paid"
    composed = mail.compose(
        db, "https://shop.test", about, "de", till.clock().tzinfo, till.clock()
    )
    assert composed
    to, text = composed
    assert to == EMAIL
    assert text.amount == "119,00\xa0$"
    assert text.within == ["Enthält 19\xa0% MwSt.: 19,00\xa0$"]
    assert text.facts[0] == ("Quittungsnummer", "1")


def test_a_bill_whose_payment_is_on_its_way_does_not_ask_for_nothing(till):
    shop = till.shop
    bill = new_bill(shop)
    till.pay(invoice := pay_now(shop, bill))
    till.look_for(invoice)
    page = page_of(shop.client, bill)
    assert page.texts["amount"] == "$100.00" and "$0.00" not in page.source
    assert not {"missing", "due", "submit"} & page.texts.keys()
    assert "$100.00 is on its way." in page.texts["coming"]


def test_a_mail_about_a_part_says_what_is_missing_once(till):
    shop = till.shop
    bill = new_bill(shop, customer_email=EMAIL)
    invoice = pay_now(shop, bill)
    till.confirm(invoice, invoice["amount_sats"] // 2)
    row = bill_now(shop, bill)
    text = mail.text_of(
        "soon", row, "Shop", None, "https://shop.test", "en", till.clock().tzinfo
    )
    assert text.text.count(text.amount) == 1 and text.within == ["Still to pay"]


def test_a_bill_that_was_paid_before_bills_had_numbers_has_a_page(till):
    shop = till.shop
    bill = new_bill(shop)
    invoice = pay_now(shop, bill)
    till.confirm(invoice, invoice["amount_sats"] - 100)
    shop.service.db.connection.execute_sql(
        "UPDATE invoice SET receipt_number = NULL, tax_percent = NULL"
    )
    page = page_of(shop.client, bill)
    assert stands(shop, bill)[0] == "paid" and "receipt-number" not in page.texts
