"""The till in a real browser, as a waiter uses it."""

import re

import pytest

from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants.merchants import set_brand
from btcpay.sandbox.payer.wallet import replace
from btcpay.values.money import btc_text
from tests.support.axe import axe_script, faults, misfits
from tests.support.browser import SMALL, TABLET
from tests.support.builders import pay, vanish
from tests.support.merchant_browser import MerchantBrowser, log_in


def show_code(tab, counter, amount):
    """Types the amount and presses Enter; the invoice that is shown."""
    tab.go(f"{counter.root}/merchant/till")
    tab.until("document.activeElement.id === 'amount'")
    tab.type(amount)
    tab.press("Enter")
    tab.until("document.getElementById('qr')")
    id = tab.ask("location.pathname.split('/').pop()")
    return counter.shop.get(f"/invoices/{id}").json


def assert_is_quiet(tab):
    """A paid invoice's page asks once a minute at most, a till without an invoice never."""
    polls = tab.polls
    tab.pass_time(40)
    assert tab.polls == polls > 0


def test_two_tills_turn_green_by_themselves_each_for_its_own_payment(open_tab, counter):
    tab = log_in(open_tab(counter.root), counter)
    other = log_in(open_tab(counter.root), counter)
    invoice = show_code(tab, counter, "25")
    theirs = show_code(other, counter, "30")
    address = invoice["deposit_address"]
    assert (
        tab.qr().text == f"bitcoin:{address}?amount={btc_text(invoice['amount_sats'])}"
    )
    tab.ask("window.stayed = true")
    colour = "getComputedStyle(document.getElementById('main')).backgroundColor"
    colours = [tab.ask(colour)]
    counter.pay(invoice)
    for state, words in (
        ("seen", "Payment seen. The whole amount"),
        ("paid", "Paid. The payment"),
    ):
        tab.until_state(state)
        colours.append(tab.ask(colour))
        assert tab.text("announce").startswith(words) and not tab.is_shown("qr")
        if state == "seen":
            counter.mine()
    assert len(set(colours)) == 3 and tab.ask(
        "window.stayed"
    )  # nothing was loaded again
    assert_is_quiet(tab)
    assert other.ask("document.getElementById('main').dataset.state") == "waiting"
    counter.pay(theirs)
    other.until_state("seen")
    other.click("#next")
    other.until("document.getElementById('sales')")
    # which a page does once it is painted
    other.until("document.activeElement.id === 'amount'")
    assert "On its way" in other.text("sales")
    assert_is_quiet(other)


def test_a_till_turns_red_by_itself_when_what_was_seen_is_taken_back(open_tab, counter):
    tab = log_in(open_tab(counter.root), counter)
    till = counter.till
    invoice = show_code(tab, counter, "25")
    txid = counter.pay(invoice)
    tab.until_state("seen")
    replace(till.sandbox.wallet, till.now, txid, away=True)
    till.look_for(invoice)
    tab.until_state("waiting")
    assert tab.text("announce").startswith(
        "The payment was taken back."
    ) and tab.is_shown("qr")
    red, green, _ = re.findall(
        r"[0-9]+",
        tab.ask("getComputedStyle(document.getElementById('main')).backgroundColor"),
    )[:3]
    assert int(red) > int(green)


def test_the_keys_type_and_the_next_sale_tells_the_cashier_alone_of_the_one_before(
    open_tab, counter
):
    till = counter.till
    tab = log_in(open_tab(counter.root), counter)
    invoice = show_code(tab, counter, "41")
    txid = counter.pay(invoice)
    tab.until_state("seen")
    tab.click("#next")
    tab.until("document.getElementById('keypad')")
    assert "On its way" in tab.text("sales")
    for place in (7, 11, 12, 10, 5):  # 7, 0, delete, the point, 5
        tab.click(f"#keypad > :nth-child({place})")
    assert tab.ask("document.getElementById('amount').value") == "7.5"
    assert tab.text("show") == "Charge $7.50"
    tab.click("#show")
    tab.until("document.getElementById('qr')")
    tab.ask("window.stayed = true")
    replace(till.sandbox.wallet, till.now, txid, away=True)
    till.look_for(invoice)
    tab.pass_time(6)
    tab.until(
        "document.getElementById('alarms').textContent.includes('For the cashier')"
    )
    assert tab.ask("window.stayed") and tab.is_shown("qr")
    assert not tab.ask(
        "document.querySelector('.alarm') || document.querySelector('#alarms a')"
    )


PHONES = ((375, 553), (360, 616), (390, 664), SMALL)
# Bottoms of what a sale needs and of the free window, the header's lines, the height of a key.
FIT = """(() => {
    const box = (selector) => document.querySelector(selector)?.getBoundingClientRect();
    const nav = document.querySelector('#sections');
    const isBelow = nav && getComputedStyle(nav).position === 'fixed';
    const free = isBelow ? box('#sections').top : innerHeight;
    const tops = [...document.querySelectorAll('#shop > *:not(#sections)')].map((it) => {
        const { top, height } = it.getBoundingClientRect();
        return top + height / 2;
    });
    return [box('.alarm').top >= 0 && box('#amount').top >= 0, free - box('#note-fold').bottom,
        Math.max(...tops) - Math.min(...tops), box('#keypad button').height, scrollY];
})()"""


# Between the header, whose line is its lower edge on a wide screen, and the cards.
GAP = """document.querySelector('#counter').getBoundingClientRect().top
    - document.querySelector('#shop').getBoundingClientRect().bottom"""


@pytest.fixture
def busy(new_counter):
    """The cashier chooses the tip, one sale was taken back, and the seller has a long name."""
    browser = MerchantBrowser(new_counter.shop).log_in()
    browser.post("/settings/look", name="Harbour Roasters and Sons, Bakers")
    browser.post("/tips", tips="5 10 15 20", cashier="1")
    answer = browser.post(
        "/till", **browser.page("/till").values | {"amount": "999.99"}
    )
    invoice = new_counter.shop.get(f"/invoices/{answer.headers['Location'][-28:]}").json
    pay(new_counter.shop, invoice, confirmed=False)
    vanish(new_counter.shop, invoice)
    return new_counter


@pytest.mark.parametrize("language", ["en", "de", "ar", "fa"])
@pytest.mark.parametrize(
    "till_only", [False, True], ids=["the owner's", "a till-only device's"]
)
def test_amount_keys_and_button_are_in_sight_whatever_else_the_till_shows(
    busy, open_tab, language, till_only
):
    tab = log_in(open_tab(busy.root), busy, till_only)
    shown = ["#tips", ".alarm"] + ([] if till_only else ["#inbox strong"])
    for size in (*PHONES, (1024, 700), (1280, 800)):
        tab.emulate(size)
        tab.go(f"{busy.root}/merchant/till?lang={language}")
        tab.until("document.documentElement.classList.contains('js')")
        assert all(tab.ask(f"!!document.querySelector({it!r})") for it in shown)
        is_whole, below, lines, key, scrolled = tab.ask(FIT)
        assert is_whole and scrolled == 0 and lines < 8, (size, lines)
        assert 0 <= below <= 40 and key >= 32, (size, below, key)
        assert misfits(tab, size[0]) == [], size
        assert size[0] < 768 or tab.ask(GAP) >= 8, size


# What is typed at the keypad, and what the button says.
CHARGES = {
    "en": (("4", ".", "2", "+", "3"), "Charge $7.20"),
    "de": (("4", ",", "2", "+", "3"), "7,20\xa0$ kassieren"),
    "ar": (("4", ".", "+", "3"), "تحصيل \u2068\u200f7.00\xa0US$\u200e\u2069"),
    "fa": (("۴", "+", "+", "۳"), "دریافت \u2068\u200e$\xa0۷٫۰۰\u2069"),
}


@pytest.mark.parametrize("language", CHARGES)
def test_the_button_says_what_it_charges(open_tab, counter, language):
    keys, says = CHARGES[language]
    tab = log_in(open_tab(counter.root, size=PHONES[0]), counter)
    tab.go(f"{counter.root}/merchant/till?lang={language}")
    tab.until("document.documentElement.classList.contains('js')")
    without_amount = tab.text("show")
    for key in keys:
        tab.click(f"#keypad [data-key='{key}']")
    assert tab.text("show").split() == says.split()
    direction = "getComputedStyle(document.getElementById('amount')).direction"
    assert tab.ask(direction) == "ltr"  # else "4.+2" would run backwards
    tab.click("#keypad [data-key='']")
    tab.click("#keypad [data-key='']")
    assert tab.text("show") != says
    tab.click("#amount")
    tab.type("tea")
    assert tab.text("show") == without_amount


# A mark of groups may be a decimal mark: then the button names no amount.
@pytest.mark.parametrize(
    ("language", "typed"),
    [
        ("en", "1,500.50"),
        ("en", "4,20"),
        ("de", "4.20"),
        ("de", "1.500,50"),
        ("fr", "1\u202f500"),
        ("fa", "۱٬۵۰۰"),
    ],
)
def test_the_button_names_no_amount_that_is_not_plain(
    open_tab, counter, language, typed
):
    tab = log_in(open_tab(counter.root), counter)
    tab.go(f"{counter.root}/merchant/till?lang={language}")
    tab.until("document.activeElement.id === 'amount'")
    without_amount = tab.text("show")
    tab.type(typed)
    assert tab.ask("document.getElementById('amount').value") == typed
    assert tab.text("show") == without_amount


@pytest.mark.parametrize(
    ("typed", "says", "charged"),
    [("8.40", "Charge $9.24", 9.24), ("0.25+0.20", "Charge $0.49", 0.49)],
)
def test_the_button_adds_the_tip_that_the_cashier_chooses(
    open_tab, counter, typed, says, charged
):
    shop = counter.shop
    shop.sql("UPDATE merchant SET gratuity_percents = '10', gratuity_by_cashier = 1")
    tab = log_in(open_tab(counter.root), counter)
    tab.go(f"{counter.root}/merchant/till")
    tab.until("document.activeElement.id === 'amount'")
    tab.click("#tips [value='10']")
    tab.click("#amount")
    tab.type(typed)
    assert tab.text("show") == says
    tab.click("#tips [value='']")
    assert tab.text("show") != says
    tab.click("#tips [value='10']")
    assert tab.text("show") == says
    tab.click("#show")
    tab.until("document.getElementById('qr')")
    id = tab.ask("location.pathname.split('/').pop()")
    assert shop.get(f"/invoices/{id}").json["amount_usd_quote"] == charged


@pytest.mark.parametrize(
    ("language", "without", "with_tip"),
    [("en", "Tea $8.40", "Tea $9.24"), ("fa", "Tea \u200e$\xa0۸٫۴۰", "Tea \u200e$\xa0۹٫۲۴")],
)  # fmt: skip
def test_what_is_sold_often_says_what_its_button_charges(
    open_tab, new_counter, language, without, with_tip
):
    shop = new_counter.shop
    browser = MerchantBrowser(shop).log_in()
    browser.post("/tips", tips="10", cashier="1")
    for _ in range(2):
        form = {"amount": "8.40", "note": "Tea", "tip": "10"}
        browser.post("/till", **browser.page("/till").values | form)
    tab = log_in(open_tab(new_counter.root), new_counter)
    tab.go(f"{new_counter.root}/merchant/till?lang={language}")
    tab.until("document.activeElement.id === 'amount'")
    button = "document.querySelector('#suggested button')"
    words = f"{button}.textContent.replace(/[\u2068\u2069]/g, '').trim()"
    assert tab.ask(words) == without
    tab.click("#tips [value='10']")
    assert tab.ask(words) == with_tip
    tab.click("#tips [value='']")
    assert tab.ask(words) == without
    tab.click("#tips [value='10']")
    tab.click("#suggested button")
    tab.until("document.getElementById('qr')")
    id = tab.ask("location.pathname.split('/').pop()")
    assert shop.get(f"/invoices/{id}").json["amount_usd_quote"] == 9.24


BUTTON = """(() => {
    const bar = document.querySelector('#sections');
    const isBelow = getComputedStyle(bar).position === 'fixed';
    const free = isBelow ? bar.getBoundingClientRect().top : innerHeight;
    return free - document.querySelector('#show').getBoundingClientRect().bottom;
})()"""


@pytest.mark.parametrize("typed", ["tea", "1,500"])
def test_after_a_refused_amount_the_button_is_in_sight(open_tab, new_counter, typed):
    for size in ((390, 844), (375, 667), (320, 568), (1280, 800)):
        tab = log_in(open_tab(new_counter.root, size=size), new_counter)
        tab.go(f"{new_counter.root}/merchant/till")
        tab.until("document.activeElement.id === 'amount'")
        tab.type(typed)
        tab.press("Enter")
        tab.until("document.getElementById('amount-problem')")
        assert not tab.ask("!!document.getElementById('refused')")
        assert tab.ask(BUTTON) >= 0 and tab.ask("scrollY") == 0, size
        assert misfits(tab, size[0]) == [], size


def test_a_phone_sells_by_four_taps_tip_included_and_axe_finds_nothing(
    new_counter, open_tab
):
    """Two digits, the button, the customer's tip; what was sold often takes two."""
    MerchantBrowser(new_counter.shop).log_in().post("/tips", tips="5 10 15")
    tab = log_in(open_tab(new_counter.root, size=PHONES[0]), new_counter)
    taps = []

    def tap(selector, then):
        taps.append(selector)
        tab.click(selector)
        tab.until(then)

    for _ in range(2):
        tab.go(f"{new_counter.root}/merchant/till")
        tab.until("document.documentElement.classList.contains('js')")
        taps.clear()
        tap(
            "#keypad > :nth-child(2)", "document.getElementById('amount').value === '2'"
        )
        tap(
            "#keypad > :nth-child(5)",
            "document.getElementById('amount').value === '25'",
        )
        tap("#show", "document.getElementById('tip-choice')")
        assert faults(tab, axe_script()) == [] and misfits(tab, PHONES[0][0]) == []
        tap("#tip-choice [value='10']", "document.getElementById('qr')")
        assert len(taps) == 4 and "2.50" in tab.text("tip")
    tab.go(f"{new_counter.root}/merchant/till")
    taps.clear()
    tap("#suggested button", "document.getElementById('tip-choice')")
    tap("#tip-choice [value='0']", "document.getElementById('qr')")
    assert len(taps) == 2


def test_who_waits_at_the_turned_screen_sees_nothing_brown_and_no_doubt(
    new_counter, open_tab
):
    tab = log_in(open_tab(new_counter.root), new_counter)
    show_code(tab, new_counter, "25")
    quiet = "getComputedStyle(document.getElementById('time-left')).color"
    ink = "getComputedStyle(document.getElementById('state')).color"
    assert tab.is_shown("time-left") and tab.ask(quiet) == tab.ask(ink)
    assert not tab.is_shown("checked")
    tab.pass_time(125)  # in which no check has run
    tab.until("!document.getElementById('checked').hidden")


def test_a_tablets_till_has_the_tabs_of_a_phone_and_leads_to_all_other_pages(
    open_tab, counter
):
    tab = log_in(open_tab(counter.root, size=TABLET), counter)
    tab.go(f"{counter.root}/merchant/till")
    tab.until("document.getElementById('sections')")
    icons = "[...document.querySelectorAll('#sections svg')]"
    shown = f"{icons}.filter((it) => it.checkVisibility()).length"
    assert tab.is_shown("more-tab") and tab.ask(shown) == 5
    tab.click("#more-tab")
    tab.until("document.getElementById('more-sections')")


ROLL = (80 / 25.4, 200 / 25.4)  # inches
BUSINESS = {
    "business_address": "Harbour Roasters GmbH\nAm Kai 1\n20095 Hamburg",
    "tax_number": "DE 123456789",
    "tax_percent": "19",
}


def test_a_receipt_fits_on_one_piece_of_the_roll_in_every_language(
    open_tab, new_counter
):
    shop = new_counter.shop
    set_brand(shop.service.db, shop.merchant_id, BUSINESS)
    browser = MerchantBrowser(shop).log_in()
    browser.post("/tips", tips="10", cashier="1")
    form = browser.page("/till").values | {"amount": "25", "note": "Tea", "tip": "10"}
    id = browser.post("/till", **form).headers["Location"][-28:]
    pay(shop, shop.get(f"/invoices/{id}").json)
    tab = log_in(open_tab(new_counter.root), new_counter)
    for language in LANGUAGES:
        tab.go(f"{new_counter.root}/merchant/till/{id}?lang={language}")
        assert tab.paper_pages(ROLL) == 1, language
    tab.emulate(media="print")
    for name in ("business-address", "tax-number", "tip", "tax", "receipt-number"):
        assert tab.is_shown(name), name
    align = "getComputedStyle(document.getElementById('business-address')).textAlign"
    assert tab.ask(align) == "center"
