"""A second currency beside the dollar: on the pages, at receipt, in exports; never a wrong one."""

import csv
import io
from types import SimpleNamespace

import pytest
from fake_esplora import Terminal
from payer import Page, made, press

EURO = "23.00\u00a0EUR"


@pytest.fixture
def euros(shop, ticker):
    """A shop that shows euros too, and a ticker that knows them."""
    ticker.price("60000.00", eur="55200.00", jpy="9000000")
    show_in(shop, "EUR")
    return shop


def show_in(shop, currency):
    shop.sql(f"UPDATE merchant SET currency = '{currency}'")  # noqa: S608


def page_of(shop, invoice_id, query=""):
    return Page(shop.client.get(f"/pay/{invoice_id}{query}").text)


def test_an_invoice_says_what_its_dollars_are_worth(euros, ticker):
    invoice = euros.invoice(25)
    ticker.price("60000.00", eur="99999.00")
    euros.clock.move(hours=1)
    page = page_of(euros, invoice["id"])
    assert page.texts["amount-usd"] == "25.00 USD" and page.texts["amount-second"].endswith(EURO)
    ticker.price("60000.00", eur="55200.00", jpy="9000000")
    euros.clock.move(hours=1)
    assert "2.300,00\u00a0EUR" in page_of(euros, euros.invoice(2500)["id"], "?lang=de").source
    show_in(euros, "JPY")  # which has no cents
    assert page_of(euros, euros.invoice(25)["id"]).texts["amount-second"].endswith("3,750\u00a0JPY")


def test_the_interface_knows_dollars_alone(euros):
    shown = euros.invoice(25), euros.get("/invoices").json["data"][0]
    show_in(euros, "GBP")
    assert {frozenset(one) for one in (*shown, euros.invoice(25))} == {frozenset(shown[0])}
    assert not {"currency", "price_in_currency"} & shown[0].keys()


@pytest.mark.parametrize(
    ("currency", "others"),
    [(None, {"eur": "55200"}), ("EUR", {}), ("EUR", {"eur": "0"})],
    ids=["no second currency", "a ticker that does not know it", "a ticker without a price"],
)
def test_where_there_is_no_price_nothing_is_shown_and_the_invoice_is_made(
    shop, ticker, currency, others
):
    ticker.price("60000.00", **others)
    if currency:
        show_in(shop, currency)
    page = page_of(shop, shop.invoice(25)["id"])
    assert page.texts["amount-usd"] == "25.00 USD" and "amount-second" not in page.texts


def test_a_links_page_has_both_prices_and_no_page_asks_a_ticker(euros, ticker):
    link, invoice = euros.link(amount_usd=25), euros.invoice(25)
    asked = ticker.asked
    for path in (f"/pay/{invoice['id']}", f"/pay/{invoice['id']}/status", f"/link/{link['id']}"):
        assert euros.client.get(path).status_code == 200
    assert ticker.asked == asked
    price = euros.client.get(f"/link/{link['id']}/price").json
    assert price.pop("good_for_ms") > 110_000
    assert price == {"usd": "60000.00", "currency": "EUR", "price": "55200.00", "places": 2}
    assert page_of(euros, made(press(euros.client, link))).texts["amount-second"].endswith(EURO)


def exported(shop):
    text, _ = Terminal(SimpleNamespace(shop=shop)).run("export", "payments")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_payment_keeps_its_value_at_receipt(till, ticker):
    """Not that of the quote, and not that of the export."""
    shop = till.shop
    ticker.price("60000.00", eur="55200.00")
    show_in(shop, "EUR")
    invoice = shop.invoice(25)
    ticker.price("80000.00", eur="72000.00")
    till.pay(invoice)
    till.mine()
    till.check()
    page = page_of(shop, invoice["id"])
    assert page.state == "paid" and page.texts["amount-second"].endswith(EURO)
    show_in(shop, "JPY")
    ticker.price("60000.00", eur="55200.00")
    (payment,) = exported(shop)
    assert (payment["usd_at_receipt"], payment["currency"]) == ("33.33", "EUR")
    assert payment["value_at_receipt"] == "30.00"


def test_the_command_sets_it_shows_it_and_takes_it_off(shop, ticker):
    btcpay = Terminal(SimpleNamespace(shop=shop))
    ticker.price("60000.00", eur="55200.00")
    none = {"merchant": "shop", "currency": None, "price": None}
    assert btcpay.json("merchant", "currency", "shop") == [none]
    euro = {"merchant": "shop", "currency": "EUR", "price": 55200}
    assert btcpay.json("merchant", "currency", "shop", "eur") == [euro]
    said, errors = btcpay.run("merchant", "currency", "shop", "GBP")
    assert "GBP" in said and "no price in GBP right now" in errors
    _, errors = btcpay.run("merchant", "currency", "shop", "EUX", status=1)
    assert "no currency of ISO 4217" in errors
    (kept,) = btcpay.json("merchant", "currency", "shop")
    assert kept["currency"] == "GBP"
    assert btcpay.json("merchant", "currency", "shop", "off") == [none]
    made = btcpay.json("invoice", "create", "shop", "--usd", "25")
    assert "amount-second" not in page_of(shop, made["id"]).texts
