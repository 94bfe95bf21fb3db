"""A receipt's page: its number, and what the shop says of its business and its tax."""

import pytest

from btcpay.merchants.merchants import set_brand
from storage.queries import invoices
from tests.support.builders import finish, pay
from tests.support.payer import Page

BUSINESS = {
    "business_address": "Quay 1 <b>\n20095 Hamburg",
    "tax_number": "DE 123456789",
    "tax_percent": "7.7",
}
STATES = (
    *("waiting", "partial", "seen", "overpaid", "expired", "canceled"),
    *("reopened", "proven"),
)
PRIVATE = ("Quay 1", "20095 Hamburg", "DE 123456789")


def page_of(shop, path, language="en"):
    return shop.client.get(f"{path}?lang={language}").text


@pytest.mark.both_databases
def test_a_receipt_says_whose_it_is_and_what_tax_it_includes(shop):
    set_brand(shop.service.db, shop.merchant_id, BUSINESS)
    pay(shop, shop.invoice())
    invoice = shop.invoice(107.70)
    pay(shop, invoice)
    page = Page(page_of(shop, f"/pay/{invoice['id']}"))
    assert page.texts["receipt-number"] == "2"
    assert page.texts["business-address"] == "Quay 1 <b>\n20095 Hamburg"
    assert page.texts["tax-number"] == "DE 123456789"
    assert page.texts["tax"] == "Includes 7.7% tax: $7.70"
    german = Page(page_of(shop, f"/pay/{invoice['id']}", "de"))
    assert german.texts["tax"] == "Enthält 7,7\xa0% MwSt.: 7,70\xa0$"
    persian = Page(page_of(shop, f"/pay/{invoice['id']}", "fa"))
    assert "۷٫۷٪" in persian.texts["tax"] and persian.texts["receipt-number"] == "۲"


def test_a_receipt_of_a_shop_that_says_nothing_has_its_number_alone(shop):
    invoice = shop.invoice()
    pay(shop, invoice)
    page = Page(page_of(shop, f"/pay/{invoice['id']}"))
    assert page.texts["receipt-number"] == "1"
    assert not {"business-address", "tax-number", "tax", "tip"} & page.texts.keys()


def test_no_other_public_page_shows_the_business(shop):
    set_brand(shop.service.db, shop.merchant_id, BUSINESS)
    made = {name: shop.invoice(expires_in_hours=1) for name in STATES}
    pay(shop, made["partial"], 1_000)
    pay(shop, made["seen"], confirmed=False)
    for name in ("expired", "canceled"):
        finish(shop, made[name], name)
    pay(shop, made["overpaid"], 1_000)
    finish(shop, made["overpaid"], "expired")
    for name in ("reopened", "proven"):
        pay(shop, made[name])
    shop.service.db.run(invoices.REOPEN, id=made["reopened"]["id"])
    paths = [f"/pay/{invoice['id']}" for invoice in made.values()]
    proven = paths.pop()
    link = shop.link(title="Tea")
    paths += [f"{proven}/proof", f"{proven}/status", f"/link/{link['id']}", "/", "/x"]
    for path in paths:
        text = shop.client.get(path, headers={"Accept": "text/html"}).text
        assert "receipt-number" not in text
        for word in (*PRIVATE, "includes", "Includes"):
            assert word not in text, (path, word)
    answer = shop.get(f"/invoices/{made['proven']['id']}").text
    assert not any(word in answer for word in (*PRIVATE, "receipt", "tax"))
    assert all(word in page_of(shop, proven) for word in ("20095", "DE 123456789"))
