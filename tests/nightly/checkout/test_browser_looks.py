"""Every page in every state, in both themes: it fits its screen, and axe-core finds nothing."""

import os
from functools import partial
from pathlib import Path

import pytest

from btcpay.chain.follow import add_header
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants.branding import brand_columns
from btcpay.merchants.merchants import set_brand
from btcpay.values.ids import random_base62
from storage.queries import attentions, links
from tests.support.axe import (
    ALL_RULES,
    RULES_OF_COLOURS,
    axe_script,
    faults,
    misfits,
)
from tests.support.browser import DESK, PHONE, SMALL, TABLET
from tests.support.builders import Live, finish, pay, vanish
from tests.support.hosted import open_hosted, show
from tests.support.pictures import ACCENT, logo

LONG = "Two bags of coffee and a word without end: " + "Kaffee" * 40


@pytest.fixture(scope="module")
def hosted(browser, tmp_path_factory, ticker):
    """A server whose payments are invented; from $100 on they need three confirmations."""
    environ = {
        "BLOCKTILL_CONFIRMATIONS": "1 3@100",
        "BLOCKTILL_LINK_OPEN_INVOICES": "1",
    }
    with open_hosted(tmp_path_factory.mktemp("hosted"), ticker, **environ) as opened:
        yield opened


def coffee(hosted, amount_usd=25, **fields):
    return hosted.invoice(
        amount_usd=amount_usd, description="Two bags of coffee", **fields
    )


def waiting(hosted, **fields):
    return coffee(hosted, left_s=3000, **fields)


def countdown(hosted):
    return coffee(hosted, left_s=240)


def dust(hosted):
    return hosted.invoice(amount_usd=0.0001)


def paying(make, *payments, confirmed=True):
    """A function that makes such an invoice and pays it these satoshis (None: all)."""

    def then(hosted):
        invoice = make(hosted)
        for sats in payments:
            pay(hosted.shop, invoice, sats, confirmed=confirmed)
        return invoice

    return then


def long_ago(hosted):
    with hosted.earlier(3600):
        return paying(coffee, 20_000, confirmed=False)(hosted)


def seen(hosted):
    add_header(hosted.shop.service.db, 100, b"\x01" * 80)
    invoice = paying(partial(coffee, amount_usd=120), None)(hosted)
    add_header(hosted.shop.service.db, 101, b"\x00" * 80)
    return invoice


def overdue(hosted):
    return coffee(hosted, left_s=-60)


paid = paying(waiting, None)
paid_twice = paying(waiting, 50_000, 1_000)


def vanished(hosted):
    invoice = waiting(hosted)
    pay(hosted.shop, invoice, confirmed=False)
    vanish(hosted.shop, invoice)
    return invoice


def undone(hosted):
    invoice = paying(waiting, None, confirmed=False)(hosted)
    wanted = {
        "invoice_id": invoice["id"],
        "reason": "reorganised",
        "since_ms": 1,
        "stake_minor": 1,
    }
    wanted["merchant_id"] = hosted.shop.merchant_id
    hosted.shop.service.db.run(attentions.WANT, **wanted)
    return invoice


def of_a_link(hosted):
    link = hosted.shop.link(title="Membership", amount_usd=25)
    invoice = coffee(hosted, left_s=-60)
    hosted.shop.sql(
        f"UPDATE invoice SET payment_link_id = '{link['id']}' WHERE id = '{invoice['id']}'"  # noqa: S608
    )
    return invoice


def ended(make, status="expired"):
    """A function that makes such an invoice and ends it unpaid."""

    def then(hosted):
        finish(hosted.shop, invoice := make(hosted), status)
        return invoice

    return then


def half_paid(hosted):
    with hosted.earlier(3000):
        return paying(partial(coffee, left_s=600), 20_000)(hosted)


def branded(hosted):
    fields = {"description": "Two bags of coffee", "expires_in_hours": 1}
    return roasters(hosted, "Harbour Roasters", 96, fields)


def worst_texts(hosted):
    fields = {"amount_usd": 999_999.99, "description": LONG}
    invoice = roasters(hosted, "W" * 60, 2000, fields)
    hosted.shop.sql(
        f"UPDATE invoice SET reference = '{'W' * 200}' WHERE id = '{invoice['id']}'"  # noqa: S608
    )
    return invoice


def roasters(hosted, name, width, fields):
    """An invoice of a merchant with a name, a colour and a logo so wide."""
    merchant_id = hosted.shop.add_merchant(f"{name[:50]} {random_base62(8)}")
    brand = brand_columns(logo(width), name=name, contact="@coffee", accent=ACCENT)
    brand["return_paid"] = f"https://shop.example/thanks?{'w' * width}={{invoice}}"
    brand["return_unpaid"] = "https://shop.example/cart"
    set_brand(hosted.shop.service.db, merchant_id, brand)
    key = hosted.shop.issue("write", merchant_id)
    return hosted.shop.post("/invoices", {"amount_usd": 25} | fields, key).json


INVOICES = {
    "waiting": (waiting, "waiting"),
    "countdown": (countdown, "waiting"),
    "dust": (dust, "waiting"),
    "branded": (branded, "waiting"),
    "worst texts": (worst_texts, "waiting"),
    "partial": (paying(waiting, 20_000, confirmed=False), "partial"),
    "long ago": (long_ago, "partial"),
    "seen": (seen, "seen"),
    "overdue": (overdue, "overdue"),
    "paid": (paid, "paid"),
    "paid twice": (paid_twice, "paid"),
    "too much": (paying(waiting, 50_000), "paid"),
    "too much seen": (paying(waiting, 50_000, confirmed=False), "seen"),
    "vanished": (vanished, "waiting"),
    "undone": (undone, "seen"),
    "of a link": (of_a_link, "overdue"),
    "expired half paid": (ended(half_paid), "expired"),
    "expired": (ended(overdue), "expired"),
    "expired and paid late": (paying(ended(overdue), 20_000), "expired"),
    "canceled": (ended(coffee, "canceled"), "canceled"),
}


def check(tab, axe, name):
    for theme, rules in (("light", ALL_RULES), ("dark", RULES_OF_COLOURS)):
        for size in (DESK, TABLET, PHONE, SMALL):
            tab.emulate(size, theme, scale=2 if size == PHONE else 1)
            assert misfits(tab, size[0]) == []
            keep(tab, f"{name}-{size[0]}-{theme}")
        assert faults(tab, axe, rules) == []


def keep(tab, name):
    """A picture for eyes, where SCREENSHOTS names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        tab.until("document.getAnimations().every((it) => it.currentTime > 700)")
        Path(folder).mkdir(parents=True, exist_ok=True)
        tab.picture().save(Path(folder) / f"{name}.png", optimize=True)


@pytest.fixture(scope="module")
def axe():
    return axe_script()


@pytest.mark.parametrize("case", INVOICES)
def test_an_invoice_looks_right_in_each_state(open_tab, hosted, axe, case):
    make, state = INVOICES[case]
    tab = show(open_tab, hosted, make(hosted))
    assert tab.ask("document.getElementById('main').dataset.state") == state
    check(tab, axe, case.replace(" ", "_"))


def fixed(tab, hosted):
    link = hosted.shop.link(title="Membership", description="One year", amount_usd=120)
    return tab.go(hosted.page(link))


def flexible(tab, hosted):
    link = hosted.shop.link(title=LONG[:100], min_amount_usd=5)
    hosted.shop.sql(
        "UPDATE payment_link SET suggested = '5 12.50 2000' WHERE amount IS NULL"
    )
    return tab.go(hosted.page(link))


def wrong_amount(tab, hosted):
    flexible(tab, hosted)
    tab.click("#amount")
    tab.type("five")
    return submit(tab, "amount-problem")


def too_many(tab, hosted):
    link = hosted.shop.link(title="Tip jar")
    for amount, id in (("5", "qr"), ("6", "problem")):
        tab.go(hosted.page(link))
        tab.click("#amount")
        tab.type(amount)
        submit(tab, id)
    return tab.status


def gone(tab, hosted):
    link = hosted.shop.link(title="Tip jar")
    hosted.shop.service.db.run(links.SET_STATUS, id=link["id"], status="inactive")
    return tab.go(hosted.page(link))


def nothing_here(tab, hosted):
    return tab.go(f"{hosted.root}/pay/inv_unknown")


def submit(tab, id):
    """Presses the link's button; the status of the page that has an element of this id."""
    tab.click("#submit")
    tab.until(f"document.getElementById('{id}')")
    return tab.status


LINKS = {
    fixed: 200,
    flexible: 200,
    wrong_amount: 400,
    too_many: 429,
    gone: 410,
    nothing_here: 404,
}


@pytest.mark.parametrize("reach", LINKS, ids=lambda reach: reach.__name__)
def test_a_link_looks_right_whatever_comes_of_it(open_tab, hosted, axe, reach):
    tab = open_tab(hosted.root)
    assert reach(tab, hosted) == LINKS[reach]
    check(tab, axe, f"link_{reach.__name__}")


def test_a_link_looks_right_when_there_is_no_price(open_tab, hosted, axe, tmp_path):
    link = hosted.shop.link(title="Membership", amount_usd=120)
    with Live(
        hosted.shop, tmp_path, BLOCKTILL_PRICE_SOURCES="http://127.0.0.1:9/#/usd"
    ) as priceless:
        tab = open_tab(priceless.url)
        tab.go(f"{priceless.url}/link/{link['id']}")
        assert submit(tab, "problem") == 503
        check(tab, axe, "link_no_price")


def test_the_smallest_phone_suffices_in_every_language(open_tab, hosted):
    part = paying(waiting, 20_000, confirmed=False)
    things = (part(hosted), paid(hosted), hosted.shop.link(min_amount_usd=5))
    tab = open_tab(hosted.root, size=SMALL)
    for language in LANGUAGES:
        for thing in things:
            tab.go(f"{hosted.page(thing)}?lang={language}")
            assert tab.ask("document.documentElement.lang") == language
            assert misfits(tab, SMALL[0]) == [], (language, tab.ask("location.href"))


NEEDED = ("amount", "pay-by", "open-wallet", "qr", "send", "copy-amount")
FOLDED = ("address", "copy-address", "copy-link")
BOTTOM = "document.getElementById('{}').getBoundingClientRect().bottom"


def branded_part(hosted):
    """In dollars, with the sum in the merchant's euros beside it."""
    pay(hosted.shop, invoice := branded(hosted), 20_000)
    hosted.shop.sql(
        f"UPDATE invoice SET currency = 'EUR', price = '52000' WHERE id = '{invoice['id']}'"  # noqa: S608
    )
    return invoice


@pytest.mark.parametrize("size", [(375, 667), PHONE])
@pytest.mark.parametrize("make", [branded, branded_part], ids=["open", "partly paid"])
def test_all_that_is_needed_to_pay_is_in_one_glance_at_a_phone(
    open_tab, hosted, make, size
):
    """Also under a brand with a logo; what few need is folded below."""
    invoice = make(hosted)
    tab = open_tab(hosted.root, size=size)
    for language in LANGUAGES:
        tab.go(f"{hosted.page(invoice)}?lang={language}")
        for id in NEEDED:
            assert 0 < tab.ask(BOTTOM.format(id)) <= size[1], (language, id)
        assert not any(map(tab.is_shown, FOLDED))


def test_all_that_is_needed_to_pay_is_on_one_screen_of_a_desk(open_tab, hosted):
    """Also under a brand, with a way back, in languages with long words."""
    invoice = branded(hosted)
    tab = open_tab(hosted.root, size=DESK)
    for language in LANGUAGES:
        tab.go(f"{hosted.page(invoice)}?lang={language}")
        for id in (*NEEDED, *FOLDED):
            assert 0 < tab.ask(BOTTOM.format(id)) <= DESK[1], (language, id)


def test_what_is_no_text_stands_below_its_name_where_text_runs_from_the_right(
    open_tab, hosted
):
    """Ids, addresses and transactions run from the left in every language."""
    tab = open_tab(hosted.root, size=PHONE)
    tab.go(f"{hosted.page(paid(hosted))}?lang=ar")
    for id in ("transaction", "address", "invoice"):
        style = f"getComputedStyle(document.getElementById('{id}'))"
        assert tab.ask(f"[{style}.direction, {style}.textAlign]") == ["ltr", "right"]


def test_nothing_moves_after_the_first_view(open_tab, hosted):
    tab = open_tab(hosted.root, size=PHONE)
    tab.go(hosted.page(waiting(hosted)))
    tab.until("performance.getEntriesByName('first-contentful-paint').length")
    moved = """new Promise((done) => new PerformanceObserver((list) =>
        done(list.getEntries().map((it) => it.value)))
        .observe({type: 'layout-shift', buffered: true}) || setTimeout(() => done([]), 500))"""
    assert sum(tab.ask(moved)) < 0.01  # what is good begins at 0.1


def test_only_who_likes_motion_gets_it(open_tab, hosted):
    tab = open_tab(hosted.root)
    # From the styles: the animation of a moment may be over before the first question.
    moving = """[...document.querySelectorAll('*')].filter((it) => it.checkVisibility())
        .flatMap((it) => ['', '::before', '::after'].map((part) => getComputedStyle(it, part)))
        .map((style) => style.animationName).filter((name) => name !== 'none')"""
    for make, names in (
        (waiting, ["breathe"]),
        (paid, ["ripple", "sparks", "land", "draw"]),
    ):
        tab.emulate()
        tab.go(hosted.page(make(hosted)))
        assert tab.ask(moving) == names
        tab.emulate(still=True)
        assert tab.ask(moving) == []


def test_a_receipt_prints_on_one_page(open_tab, hosted):
    tab = show(open_tab, hosted, paid_twice(hosted), theme="dark")
    assert tab.paper_pages() == 1
    tab.emulate(media="print", theme="dark")
    assert not tab.is_shown("print") and not tab.is_shown("languages")
    assert tab.ask("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
