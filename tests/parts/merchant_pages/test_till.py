"""The till: one press makes one invoice, and its page says how it stands."""

import csv
import io
import re
from decimal import Decimal
from functools import partial
from urllib.parse import urljoin

import pytest

from btcpay.check.undo import undo_above
from btcpay.invoices.attention import update_attention
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants.merchants import set_brand
from btcpay.values.times import to_ms
from tests.support.builders import at_once, finish, pay, until, vanish
from tests.support.merchant_browser import FROM_THIS_SITE, MerchantBrowser
from tests.support.payer import Page, count


def fields(browser):
    """The form's hidden fields, by which it makes one invoice however often it is sent."""
    return browser.page("/till").values


def press(browser, amount="25", **typed):
    return browser.post("/till", **fields(browser) | {"amount": amount} | typed)


def made(answer):
    """The id of the invoice that the answer leads to."""
    assert answer.status_code == 303, answer.text
    return re.fullmatch(r"\.\./merchant/till/(inv_\w+)", answer.headers["Location"])[1]


def invoice(browser, **typed):
    return browser.shop.get(f"/invoices/{made(press(browser, **typed))}").json


def test_a_press_makes_an_invoice_that_lives_for_a_quarter_of_an_hour(browser):
    found = invoice(browser, amount="19,90", note="Table 4")
    assert found["amount_usd_quote"] == 19.9 and found["description"] == "Table 4"
    row = browser.shop.sql("SELECT expires_ms, created_ms FROM invoice").fetchone()
    assert row[0] - row[1] == 15 * 60_000
    page = browser.page(f"/till/{found['id']}")
    assert page.state == "waiting" and page.texts["amount"] == "$19.90"
    assert page.texts["description"] == "Table 4" and "<svg" in page.source
    assert page.attributes["main"]["data-poll"] == f"../../pay/{found['id']}/status"


NO_AMOUNTS = {
    **dict.fromkeys(("", "five", "-5"), "such as 25"),
    "1,500": "“1,500” can be read as two amounts: 1,500.00 or 1.50.",
    "0.10": "at least $0.18",
    "0": "above 0",
    "1000000.01": "up to $1,000,000.00",
}


def test_what_is_no_amount_makes_nothing_and_says_what_to_type(browser):
    for amount, advice in NO_AMOUNTS.items():
        answer = press(browser, amount, note="Table 4")
        page = Page(answer.text)
        assert answer.status_code == 400 and advice in page.texts["amount-problem"], (
            amount
        )
        assert page.values["amount"] == amount and page.values["note"] == "Table 4"
    assert count(browser.shop) == 0


@pytest.mark.parametrize(
    ("currency", "typed", "readings"),
    [
        ("USD", "1,500", {"1500.00", "1.50"}),
        ("EUR", "2.750", {"2750.00", "2.75"}),
        ("USD", "12.345", {"12345.00", "12.34"}),
        ("IQD", "750,000", {"750000.000", "750.000"}),
    ],
)
def test_an_amount_that_has_two_readings_is_answered_by_a_button_for_each(
    browser, ticker, currency, typed, readings
):
    ticker.price("60000.00", eur="50000.00", iqd="78600000")
    browser.post("/settings/counting", currency=currency, timezone="UTC")
    page = Page(press(browser, typed, note="Table 4").text)
    buttons = [named for tag, named in page.tags if tag == "button" and "name" in named]
    assert {named["value"] for named in buttons} == readings
    assert page.source.index('id="show"') < page.source.index(
        'id="readings"'
    )  # for Enter
    for reading in readings:
        made(press(browser, typed, note="Table 4", suggested=reading))
    rows = browser.shop.sql(
        "SELECT amount, amount_usd_quote, description FROM invoice"
    ).fetchall()
    assert {Decimal(row[0] or row[1]) for row in rows} == {
        Decimal(it) for it in readings
    }
    assert {row[2] for row in rows} == {"Table 4"}


def test_a_note_that_turns_the_writing_makes_nothing_and_says_why(browser):
    answer = press(browser, "25", note="Table \u202e4")
    page = Page(answer.text)
    assert (
        answer.status_code == 400 and "cannot be seen (U+202E)" in page.texts["problem"]
    )
    assert count(browser.shop) == 0


def test_without_a_price_nothing_is_made_and_what_was_typed_stays(browser, ticker):
    ticker.status = 500
    answer = press(browser, "25")
    page = Page(answer.text)
    assert answer.status_code == 503 and "no exchange rate" in page.texts["problem"]
    assert page.values["amount"] == "25" and count(browser.shop) == 0


def test_a_press_that_comes_eight_times_at_once_makes_one_invoice(browser):
    form = fields(browser) | {"amount": "25"}
    cookie = browser.client.get_cookie("merchant").value

    def once(_):
        client = browser.shop.client
        client.set_cookie("merchant", cookie)
        return made(client.post("/merchant/till", data=form, headers=FROM_THIS_SITE))

    (first,) = set(at_once(8, once))
    assert made(browser.post("/till", **form)) == first and count(browser.shop) == 1
    assert made(browser.post("/till", **form | {"amount": "26"})) != first


@pytest.mark.parametrize("end", ["waiting", "in a block", "its time is over"])
def test_a_page_gone_back_to_after_its_end_is_for_the_next_customer(browser, end):
    shop = browser.shop
    form = fields(browser) | {"amount": "25"}
    first = made(browser.post("/till", **form))
    if end == "its time is over":
        shop.clock.move(minutes=15)
    else:
        pay(shop, shop.get(f"/invoices/{first}").json, confirmed=end == "in a block")
    second = made(browser.post("/till", **form))
    assert second != first and browser.page(f"/till/{second}").state == "waiting"


def nothing(*_):
    """After that it stays as it is."""


def lost(browser, sats=None):
    """A sale whose payment was seen, and has vanished."""
    found = invoice(browser)
    pay(browser.shop, found, sats, confirmed=False)
    vanish(browser.shop, found)
    return found


def overdue(shop, _):
    shop.clock.move(minutes=15)


def expired(shop, _):
    shop.sql("UPDATE invoice SET status = 'expired', finished_ms = created_ms + 1")


def expired_and_paid_late(shop, found):
    expired(shop, found)
    pay(shop, found, 20_000)


STANDS = {
    "a part asks for the rest": (partial(pay, amount_sats=20_000, confirmed=False), True,
        "$12.00 of $25.00"),
    "a payment that waits for its block": (partial(pay, confirmed=False), False, "on its way"),
    "a payment in a block": (pay, False, "is confirmed"),
    "the time is over": (overdue, False, "Nobody should pay"),
    "an end without a payment": (expired, False, "Nobody should pay"),
    "a payment after the end": (expired_and_paid_late, False, "came too late"),
}  # fmt: skip


@pytest.mark.parametrize("case", STANDS)
def test_the_page_says_how_the_payment_stands(browser, case):
    happens, asks, words = STANDS[case]
    found = invoice(browser)
    happens(browser.shop, found)
    page = browser.page(f"/till/{found['id']}")
    assert words in page.texts["words"] + page.texts.get("beyond", "")
    assert page.asks_for_money is ("qr" in page.attributes) is asks
    still_open = page.status["status"] == "open"
    assert ('http-equiv="refresh"' in page.source) is still_open


def test_the_customer_sees_who_sells_and_what_is_left(browser):
    shop = browser.shop
    shop.sql(
        "INSERT INTO brand (merchant_id, name, accent) VALUES (1, 'Tea & Co', '#8a2be2')"
    )
    found = invoice(browser)
    pay(shop, found, 20_000, confirmed=False)
    page = browser.page(f"/till/{found['id']}")
    assert "Tea & Co" in page.texts["brand"] and "accent/8a2be2.css" in page.source
    assert page.texts["amount"] == "$13.00" and "25.00" in page.texts["words"]


# The sum, None for the whole; what happens after it has vanished; whether the page still asks.
TAKEN_BACK = {
    "the whole sum": (None, nothing, True),
    "the whole sum, replaced by less": (None, partial(pay, amount_sats=5_000, confirmed=False),
        True),
    "a part": (5_000, nothing, True),
    "the whole sum, and its time is over": (None, expired, False),
}  # fmt: skip


@pytest.mark.parametrize("case", TAKEN_BACK)
def test_a_payment_that_was_seen_and_is_taken_back_is_said_in_red(browser, case):
    sats, happens, asks = TAKEN_BACK[case]
    found = lost(browser, sats)
    happens(browser.shop, found)
    page = browser.page(f"/till/{found['id']}")
    assert (
        page.texts["state"] == "The payment was taken back"
        and "vanished" in page.texts["words"]
    )
    assert (
        page.attributes["main"]["data-taken-back"] == "true"
        and page.asks_for_money is asks
    )
    next = browser.page("/till")
    is_said = case != "a part"
    assert ("The payment was taken back" in next.texts["sales"]) is is_said
    assert ("taken back: $25.00" in next.texts["alarms"]) is is_said
    assert ("inbox" in next.texts) is is_said  # the badge counts it before its end
    assert page.texts["alarms"].strip() == ""
    pay(browser.shop, found)
    if asks:
        for shown in (browser.page(f"/till/{found['id']}"), browser.page("/till")):
            assert "The payment was taken back" not in shown.source
            assert shown.texts["alarms"].strip() == "" and "inbox" not in shown.texts


def test_an_alarm_stays_whatever_is_sold_after_it_until_it_is_set_aside(browser):
    shop = browser.shop
    lost_id = lost(browser)["id"]
    for amount in range(31, 46):
        shop.clock.move(seconds=10)
        invoice(browser, amount=str(amount))
    page = browser.page("/till")
    assert "25.00" not in page.texts["sales"] and "$25.00" in page.texts["alarms"]
    other = MerchantBrowser(shop).log_in(shop.add_merchant("other")).page("/till")
    assert other.texts["alarms"].strip() == "" and "inbox" not in other.texts
    assert "25.00" in browser.page("/attention").source
    answer = browser.post(f"/invoices/{lost_id}/set-aside", reason="paid in cash")
    assert answer.status_code == 303
    shop.clock.move(minutes=15)
    finish(shop, {"id": lost_id}, "expired")  # which brings nothing back
    update_attention(shop.service.db, shop.service.settings, lost_id, shop.clock())
    page = browser.page("/till")
    assert page.texts["alarms"].strip() == "" and "inbox" not in page.texts


def test_a_sale_whose_block_is_gone_is_an_alarm_until_it_is_paid_again(browser):
    shop = browser.shop
    found = invoice(browser)
    pay(shop, found)
    with shop.service.db.write():
        undo_above(shop.service.db, shop.service.settings, 99, shop.clock())
    assert "taken back: $25.00" in browser.page("/till").texts["alarms"]
    pay(shop, found)
    assert browser.page("/till").texts["alarms"].strip() == ""


@pytest.mark.parametrize("state", ["waiting", "seen", "paid"])
def test_the_next_customer_is_shown_no_alarm_and_no_way_into_the_books(browser, state):
    lost_id = lost(browser)["id"]
    found = invoice(browser, amount="30")
    if state != "waiting":
        pay(browser.shop, found, confirmed=state == "paid")
    page = browser.page(f"/till/{found['id']}")
    assert (
        page.state == state
        and lost_id not in page.source
        and "$25.00" not in page.source
    )
    assert "taken back" not in page.source and 'class="alarm"' not in page.source
    assert (
        page.texts["alarms"].strip()
        == "For the cashier: an earlier sale needs attention."
    )
    renewed = browser.page(
        page.attributes["alarms"]["data-sales"].partition("/merchant")[2]
    )
    assert renewed.texts["alarms"] == page.texts["alarms"]  # as the script renews it
    assert page.attributes["alarms"]["data-count"] == "1"  # by which it plays its sound
    assert page.source.index('id="alarms"') > page.source.index('id="next"')


def test_who_is_paid_is_looked_for_no_more_and_an_idle_till_asks_nothing(browser):
    """A look at the page of an open invoice has the check ask the mempool for it."""
    shop = browser.shop
    asked = "SELECT asked_ms FROM invoice"
    found = invoice(browser)
    browser.page(f"/till/{found['id']}")
    until(
        lambda: shop.sql(asked).fetchone()[0] == to_ms(shop.clock()),
        "the look to be noted",
    )
    pay(shop, found)
    before = to_ms(shop.clock())
    shop.clock.move(minutes=5)
    browser.page(f"/till/{found['id']}")
    assert browser.page("/till").attributes["main"] == {"id": "main"}  # nothing to poll
    shop.service.notes.close()
    assert shop.sql(asked).fetchone()[0] == before


def test_the_last_ten_sales_stand_beneath_each_as_it_is_now(browser):
    shop = browser.shop
    other = MerchantBrowser(shop).log_in(shop.add_merchant("other"))
    shop.invoice(amount_usd=99)  # not of the till
    found = invoice(browser)
    sales = browser.page("/till").texts["sales"]
    assert "Open" in sales and "99.00" not in sales
    assert browser.page("/till").attributes["alarms"]["data-waits"] == "false"
    pay(shop, found, confirmed=False)
    assert "On its way" in browser.page("/till").texts["sales"]
    assert browser.page("/till").attributes["alarms"]["data-waits"] == "true"
    assert "Nothing has been sold" in other.page("/till").texts["sales"]
    for amount in range(31, 41):
        shop.clock.move(seconds=10)
        invoice(browser, amount=str(amount))
    sales = browser.page("/till").texts["sales"]
    assert "25.00" not in sales and sales.index("40.00") < sales.index("31.00")


def test_the_customer_chooses_the_tip_on_the_turned_screen_before_the_code(browser):
    browser.post("/tips", tips="5 10")
    form = fields(browser)
    assert "tips" not in browser.page("/till").attributes
    led = browser.post(
        "/till", **form | {"amount": "25", "note": "Cake & tea"}
    ).headers["Location"]
    page = browser.page(led.removeprefix("../merchant"))
    assert (
        count(browser.shop) == 0
        and not page.asks_for_money
        and "shop" not in page.attributes
    )
    assert (
        page.texts["amount"] == "$25.00" and page.texts["description"] == "Cake & tea"
    )
    buttons = re.findall(r'name="tip" value="(\d+)">(.+)</button>', page.source)
    shown = [(value, re.sub("<[^>]+>", "", text)) for value, text in buttons]
    assert shown == [("5", "5% $1.25"), ("10", "10% $2.50"), ("0", "No tip")]
    ids = [
        made(browser.post("/till", **page.values | {"tip": it}))
        for it in ("10", "10", "0")
    ]
    assert ids[0] == ids[1] != ids[2]
    rows = browser.shop.sql(
        "SELECT gratuity, amount_usd_quote, description FROM invoice"
    ).fetchall()
    assert sorted(map(tuple, rows)) == [
        ("0.00", "25.00", "Cake & tea"),
        ("2.50", "27.50", "Cake & tea"),
    ]
    for language in LANGUAGES:
        shown = browser.page(f"/till/tip?amount=25&lang={language}")
        assert shown.tags[0][1]["lang"] == language and "tip-choice" in shown.attributes
    for wrong in ("", "amount=x", "amount=-1", "amount=1,500"):
        assert browser.get(f"/till/tip?{wrong}").status_code == 400
    for amount in ("0.10", "five", "1,500"):  # nobody is asked on what cannot be sold
        assert "problem" in press(browser, amount).text, amount


def test_what_a_sale_was_for_is_remembered_with_its_amount(browser):
    for note in ("Coffee", "Coffee", "Tea"):
        made(press(browser, "4.50", note=note))
        browser.shop.clock.move(seconds=10)
    page = browser.page("/till")
    assert page.texts["suggested"].split() == ["Coffee", "$4.50"]
    known = [named["value"] for tag, named in page.tags if tag == "option"]
    assert known == ["Coffee", "Tea"] and page.attributes["note"]["list"] == "notes"
    found = made(press(browser, "", suggested="4.50 Coffee", note="not this"))
    assert browser.page(f"/till/{found}").texts["description"] == "Coffee"


def test_what_is_sold_often_is_one_press_and_a_tip_is_taken_by_its_percentage(browser):
    shop = browser.shop
    assert "tips" not in browser.page("/till").attributes  # off until set
    assert browser.post("/tips", tips="5 %, 10", cashier="1").status_code == 303
    form = fields(browser) | {"suggested": "19.90", "tip": "10"}
    found = shop.get(f"/invoices/{made(browser.post('/till', **form))}").json
    assert found["amount_usd_quote"] == 21.89
    assert shop.sql("SELECT gratuity FROM invoice").fetchone()[0] == "1.99"
    for path in ("till", "invoices"):
        assert "1.99" in browser.page(f"/{path}/{found['id']}").texts["tip"]
    for sats in (
        1000,
        found["amount_sats"] - 1000,
        500,
    ):  # the bookkeeper's sum has it once
        pay(shop, found, sats)
    lines = csv.DictReader(io.StringIO(browser.get("/downloads/payments").text))
    tips = [(line["tip"], line["tip_currency"]) for line in lines]
    assert sorted(tips) == [("", ""), ("", ""), ("1.99", "USD")]
    assert "19.90" not in browser.page("/till").texts.get("suggested", "")  # sold once
    made(press(browser, "19.90", tip="99"))  # no tip that is offered
    page = browser.page("/till")
    assert "19.90" in page.texts["suggested"] and "5%" in page.texts["tips"]
    for wrong in ("51", "0", "5 10 15 20 25", "1.5", "x"):
        assert "tips-problem" in Page(browser.post("/tips", tips=wrong).text).texts, (
            wrong
        )
    assert browser.post("/tips", tips="۵٪، ۱۰", cashier="1").status_code == 303
    assert browser.page("/till").values["tips"] == "5 10"
    assert browser.post("/tips", tips="", cashier="1").status_code == 303
    assert "tips" not in browser.page("/till").attributes


def test_the_till_can_be_installed_and_gives_a_receipt(browser):
    browser.post("/settings/look", name="shop", contact="+49 30 123")
    manifest = browser.get("/till/manifest")
    assert manifest.mimetype == "application/manifest+json"
    assert manifest.json["start_url"] == "../../merchant/till"
    (touch,) = re.findall(
        'rel="apple-touch-icon" href="([^"]+)"', browser.page("/till").source
    )
    icons = {touch: "image/png"} | {
        one["src"]: one["type"] for one in manifest.json["icons"]
    }
    for address, media_type in icons.items():
        shown = browser.client.get(urljoin("/merchant/till", address))
        assert (
            shown.mimetype == media_type
            and media_type[6:9] in str(shown.data[:9]).lower()
        )
    assert [one["sizes"] for one in manifest.json["icons"]] == ["any", "512x512"]
    found = invoice(browser)
    assert "receipt-code" not in browser.page(f"/till/{found['id']}").texts
    pay(browser.shop, found)
    page = browser.page(f"/till/{found['id']}")
    assert "<svg" in page.source and {"receipt-code", "print"} <= page.attributes.keys()
    on_paper = re.search(r'class="on-paper">(.*?)</p>', page.source, re.S)[1]
    assert (
        "+49 30 123" in on_paper
        and found["id"] in on_paper
        and "$60,000.00" in on_paper
        and page.texts["receipt-number"] == "1"
    )
    business = {"business_address": "Quay 1", "tax_number": "DE1", "tax_percent": "19"}
    set_brand(browser.shop.service.db, browser.shop.merchant_id, business)
    taxed = invoice(browser)
    assert "Quay 1" not in browser.page(f"/till/{taxed['id']}").source
    pay(browser.shop, taxed)
    texts = browser.page(f"/till/{taxed['id']}").texts
    assert texts["business-address"] == "Quay 1"
    assert texts["tax-number"] == "Tax number DE1"
    assert texts["tax"].startswith("Includes 19% tax: $")
    assert texts["receipt-number"] == "2"
    assert (
        browser.shop.get(f"/invoices/{found['id']}").json["tx_hash"]
        in page.texts["words"]
    )
