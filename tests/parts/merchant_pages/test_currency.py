"""The currency that a merchant counts in: what is asked for in it, and never over dollars."""

import random
from decimal import Decimal
from fractions import Fraction
from math import ceil

import pytest

from btcpay.invoices.orders import Order
from btcpay.invoices.quotes import Price, quote_at
from btcpay.values.money import CODES, places_of
from tests.support.fake_esplora import Terminal
from tests.support.merchant_browser import ON, MerchantBrowser
from tests.support.payer import Page, made, press

EURO = "\u20ac23.00"


def test_the_satoshis_are_those_of_the_price_in_the_currency_rounded_up():
    """Twenty currencies and ten thousand amounts, against fractions."""
    chance = random.Random(24)
    codes = ["JPY", "KWD", "USD", *chance.sample(sorted(CODES), 17)]
    for _ in range(10_000):
        code = (one := chance.choice(codes))
        places = places_of(one)
        price_usd = Decimal(chance.randint(100, 30_000_000)).scaleb(-2)
        own = Decimal(chance.randint(100, 10**12)).scaleb(-2)
        price = Price(price_usd, code, price_usd if code == "USD" else own)
        most = (
            Fraction(price.in_currency) * 1_000_000 / Fraction(price_usd)
        )  # a million dollars
        units = min(10 ** chance.randint(1, 7), int(most * 10**places))
        amount = Decimal(chance.randint(1, units)).scaleb(-places)
        btc = Fraction(amount) / Fraction(price.in_currency)
        *_, sats, worth_usd = quote_at(price, Order(1, amount, None, {}, code))
        assert worth_usd >= Decimal("0.01"), (amount, price)
        assert sats == ceil(btc * 10**8), (amount, price)
        exact = btc * Fraction(price_usd)
        near = Fraction(1, 200) if exact > Fraction(1, 200) else Fraction(1, 100)
        assert abs(Fraction(worth_usd) - exact) <= (0 if code == "USD" else near), (
            amount,
            price,
        )


@pytest.fixture
def euros(open_shops, ticker):
    """A shop that counts in euros, and a ticker that knows them."""
    ticker.price("60000.00", eur="55200.00", jpy="9000000")
    shop = open_shops(**ON)
    count_in(shop, "EUR")
    return shop


def count_in(shop, currency):
    shop.sql(f"UPDATE merchant SET currency = '{currency}'")  # noqa: S608


def page_of(shop, invoice_id, query=""):
    return Page(shop.client.get(f"/pay/{invoice_id}{query}").text)


def sell(shop, amount="25"):
    """A press at the till; its answer."""
    browser = MerchantBrowser(shop).log_in()
    return browser.post(
        "/till", press=browser.page("/till").values["press"], amount=amount
    )


def test_what_is_priced_in_it_leads_with_it_and_the_interface_says_dollars(euros):
    till = sell(euros).headers["Location"].rpartition("/")[2]
    link = Terminal(euros).json(
        "link", "create", "shop", "--amount", "25", "--title", "Tea"
    )
    pressed = made(press(euros.client, link))
    command = Terminal(euros).json("invoice", "create", "shop", "--amount", "25")["id"]
    for id in (till, pressed, command):
        invoice = euros.get(f"/invoices/{id}").json
        assert (invoice["amount_sats"], invoice["amount_usd_quote"]) == (45_290, 27.17)
        page = page_of(euros, id)
        assert (
            page.texts["amount"] == "\u20ac25.00" and "amount-beside" not in page.texts
        )
    assert (link["amount_usd"], link["amount_mode"]) == (27.17, "fixed")
    assert (
        Page(euros.client.get(f"/link/{link['id']}").text).texts["price"]
        == "\u20ac25.00"
    )
    shown = Terminal(euros).run("invoice", "show", till)[0]
    assert "25.00 EUR at 55,200.00 EUR a bitcoin" in shown


def test_another_currency_is_asked_for_by_its_name_and_in_its_units(euros):
    words = "invoice", "create", "shop", "--currency", "jpy", "--amount"
    made = Terminal(euros).json(*words, "3750")
    assert page_of(euros, made["id"]).texts["amount"] == "\u00a53,750"
    assert "at most" in Terminal(euros).run(*words, "1e300", status=2)[1]
    assert (
        "amounts in JPY have 0 decimals"
        in Terminal(euros).run(*words, "3750.5", status=2)[1]
    )
    assert (
        "not an ISO 4217"
        in Terminal(euros).run(*words[:4], "EUX", "--amount", "1", status=1)[1]
    )


def test_a_dollar_sign_in_a_euro_shop_makes_no_invoice_and_its_own_signs_do(euros):
    refused = sell(euros, "$100")
    assert refused.status_code == 400 and "another currency" in refused.text
    words = "invoice", "create", "shop", "--amount"
    assert "another currency" in Terminal(euros).run(*words, "$100", status=2)[1]
    assert "can be read as" in Terminal(euros).run(*words, "1,000", status=2)[1]
    assert euros.sql("SELECT count(*) FROM invoice").fetchone()[0] == 0
    assert (
        sell(euros, "\u20ac100").status_code
        == sell(euros, "100 \u20ac").status_code
        == 303
    )
    made = Terminal(euros).json(*words, "EUR 1.234,50")
    assert page_of(euros, made["id"]).texts["amount"] == "\u20ac1,234.50"
    link = Terminal(euros).json("link", "create", "shop", "--amount", "100 \u20ac")
    assert "100.00" in page_of_link(euros, link)


def page_of_link(shop, link):
    return shop.client.get(f"/link/{link['id']}").text


def test_no_way_falls_back_to_dollars(euros, ticker):
    Terminal(euros).run("link", "create", "shop", "--amount", "25")
    flexible = Terminal(euros).json("link", "create", "shop", "--title", "Tips")
    (fixed,) = [
        row for row in euros.get("/payment-links").json["data"] if row["amount_usd"]
    ]
    ticker.price("60000.00")
    euros.clock.move(hours=1)
    euros.service.prices._rates.clear()
    ways = {
        "the till": lambda: sell(euros).status_code,
        "a link": lambda: press(euros.client, fixed).status_code,
        "a link of any amount": lambda: press(euros.client, flexible, "25").status_code,
        "a new link": lambda: new_link(euros).status_code,
    }
    assert {way: ask() for way, ask in ways.items()} == dict.fromkeys(ways, 503)
    for words in ("invoice create shop --amount 25", "link create shop --amount 25"):
        assert "BTC/EUR" in Terminal(euros).run(*words.split(), status=1)[1]
    assert euros.sql("SELECT count(*) FROM invoice").fetchone()[0] == 0
    assert euros.sql("SELECT count(*) FROM payment_link").fetchone()[0] == 2
    assert "amount-beside" not in page_of(euros, euros.invoice(25)["id"]).texts


def test_what_is_worth_more_than_a_million_dollars_is_refused_everywhere(euros):
    for words in (
        "invoice create shop --amount 1000000",
        "invoice create shop --amount 1000000.01 --currency USD",
        "link create shop --amount 1000000",
        "link create shop --max 1000000.01 --currency USD",
    ):
        _, errors = Terminal(euros).run(*words.split(), status=1)
        assert errors == "blocktill: the amount is worth more than 1,000,000 USD\n", (
            words
        )
    answers = sell(euros, "1000000"), new_link(euros, "1000000")
    assert [answer.status_code for answer in answers] == [400, 400]
    assert all("1,000,000.00" in answer.text for answer in answers)
    assert euros.sql("SELECT count(*) FROM payment_link").fetchone()[0] == 0
    assert euros.sql("SELECT count(*) FROM invoice").fetchone()[0] == 0


def test_a_form_is_in_the_currency_that_it_named(euros):
    """The merchant counts in another one before the press comes."""
    browser = MerchantBrowser(euros).log_in()
    till, link = (browser.page(path).values for path in ("/till", "/links/new"))
    count_in(euros, "JPY")
    for _ in range(2):
        browser.post("/till", **browser.page("/till").values | {"amount": "2500"})
    mistaken = Page(browser.post("/till", **till | {"amount": "x"}).text)
    assert "EUR" in mistaken.source and mistaken.values["currency"] == "EUR"
    assert 'name="suggested"' not in mistaken.source  # amounts that were sold in yen
    assert 'name="suggested"' in browser.page("/till").source
    sold = browser.post("/till", **till | {"amount": "25.50"}).headers["Location"]
    browser.post("/links", **link | {"amount": "25.50"})
    stored = "SELECT currency, amount FROM "
    assert euros.sql(f"{stored} invoice").fetchall()[2:] == [("EUR", "25.50")]
    assert euros.sql(f"{stored} payment_link").fetchall() == [("EUR", "25.50")]
    assert browser.page("/till").values["currency"] == "JPY" and "inv_" in sold
    assert (
        browser.post("/till", **till | {"currency": "EUX", "amount": "1"}).status_code
        == 400
    )


def new_link(shop, amount="25"):
    browser = MerchantBrowser(shop).log_in()
    return browser.post(
        "/links", press=browser.page("/links/new").values["press"], amount=amount
    )


def test_an_invoice_of_the_interface_leads_with_dollars_and_shows_the_currency_beside(
    euros, ticker
):
    invoice = euros.invoice(25)
    ticker.price("60000.00", eur="99999.00")
    euros.clock.move(hours=1)
    page = page_of(euros, invoice["id"])
    assert page.texts["amount"] == "$25.00" and page.texts["amount-beside"].endswith(
        EURO
    )
    ticker.price("60000.00", eur="55200.00", jpy="9000000")
    euros.clock.move(hours=1)
    assert (
        "2.300,00\u00a0\u20ac"
        in page_of(euros, euros.invoice(2500)["id"], "?lang=de").source
    )
    count_in(euros, "JPY")  # which has no cents
    assert (
        page_of(euros, euros.invoice(25)["id"])
        .texts["amount-beside"]
        .endswith("\u00a53,750")
    )


def test_a_links_page_works_out_bitcoin_by_its_own_currency_and_no_page_asks_a_ticker(
    euros, ticker
):
    link = Terminal(euros).json("link", "create", "shop", "--title", "Tips")
    invoice = euros.invoice(25)
    asked = ticker.asked
    for path in (
        f"/pay/{invoice['id']}",
        f"/pay/{invoice['id']}/status",
        f"/link/{link['id']}",
    ):
        assert euros.client.get(path).status_code == 200
    assert ticker.asked == asked
    price = euros.client.get(f"/link/{link['id']}/price").json
    assert price.pop("good_for_ms") > 110_000 and price == {"price": "55200.00"}


def test_the_command_sets_the_currency_and_shows_it(shop, ticker):
    blocktill = Terminal(shop)
    ticker.price("60000.00", eur="55200.00")
    dollars = {"merchant": "shop", "currency": "USD", "price": 60000}
    assert blocktill.json("merchant", "currency", "shop") == [dollars]
    euro = {"merchant": "shop", "currency": "EUR", "price": 55200}
    assert blocktill.json("merchant", "currency", "shop", "eur") == [euro]
    said, errors = blocktill.run("merchant", "currency", "shop", "GBP")
    assert "GBP" in said and "no price in GBP now" in errors
    _, errors = blocktill.run("merchant", "currency", "shop", "EUX", status=1)
    assert "not an ISO 4217" in errors
    (kept,) = blocktill.json("merchant", "currency", "shop")
    assert kept["currency"] == "GBP"
