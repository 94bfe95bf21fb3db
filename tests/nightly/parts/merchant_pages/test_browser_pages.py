"""The merchant's pages in a real browser: how all of them look, by keyboard, and trips."""

import pytest

from btcpay.languages.catalogs import LANGUAGES
from tests.support.axe import axe_script, look, misfits
from tests.support.browser import DESK, PHONE, SMALL
from tests.support.builders import pay
from tests.support.merchant_browser import MerchantBrowser, log_in
from tests.support.merchant_paths import filled, rules

# The focused element, whether an outline shows it, and whether nothing lies over its middle.
FOCUSED = """(() => {
    const it = document.activeElement, box = it.getBoundingClientRect();
    it.dataset.reached = '';
    const style = getComputedStyle(it), line = it.getClientRects()[0];
    const there = document.elementFromPoint(line.x + line.width / 2, line.y + line.height / 2);
    const outlined = parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== 'none';
    return [it === document.body, outlined || it.type === 'date', // whose parts show it themselves
        it.contains(there) || there?.contains(it), it.outerHTML.slice(0, 80)];
})()"""
UNREACHED = """[...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
    .filter((it) => it.type !== 'hidden' && !it.disabled && it.checkVisibility()
        && (it.type !== 'radio' || it.checked) && !('reached' in it.dataset))
    .map((it) => it.outerHTML.slice(0, 80))"""
MOST_PRESSES = 200


def late(counter, description):
    """An invoice that is paid after it has expired; its id."""
    invoice = counter.invoice(left_s=-60, description=description)
    counter.till.check()
    counter.till.pay(invoice)
    counter.mine()
    return invoice["id"]


@pytest.fixture(scope="module")
def pages(counter):
    """The path of every page, of a shop that has some of everything, long words among it."""
    shop = counter.shop
    paid = shop.invoice(
        description="Two bags of coffee and a word without end: " + "Kaffee" * 20
    )
    counter.pay(paid)
    counter.mine()
    waiting = shop.invoice(amount_usd=999_999.99)
    pay(shop, waiting, 1000, confirmed=False)
    link = shop.link(title="W" * 60)
    MerchantBrowser(shop).log_in()  # another device
    shown = MerchantBrowser(shop).log_in()
    shown.post("/tips", tips="5 10 15 20")
    sold = shown.post("/till", amount="999999.99", tip="0").headers["Location"][-28:]
    ids = [paid["id"], waiting["id"], late(counter, "A cake"), link["id"], sold]
    found = ["/till/tip?amount=999999.99&note=" + "Kaffee" * 20]
    for path in (path for rule in rules(shop, "GET") for path in filled(rule, ids)):
        answer = shown.get(path, buffered=True)
        if answer.status_code == 200 and answer.mimetype == "text/html":
            found.append(path)
    assert len(found) >= 12
    ask = "permissions=btcpay.store.canviewinvoices&redirect=https://shop.example/"
    is_served = (
        shown.client.get(connect := f"/api-keys/authorize?{ask}").status_code == 200
    )
    return [*found, *([f"/..{connect}"] if is_served else [])]


@pytest.mark.parametrize("language", ["en", "ar"])
def test_every_merchants_page_fits_in_both_themes_and_axe_finds_nothing(
    open_tab, counter, pages, language
):
    """Arabic runs from right to left."""
    tab = log_in(open_tab(counter.root), counter)
    axe = axe_script()
    found = []
    for path in pages:
        and_then = "&" if "?" in path else "?"
        assert tab.go(f"{counter.root}/merchant{path}{and_then}lang={language}") == 200
        tab.until("document.getElementById('main')")
        found += [(path, fault) for fault in look(tab, axe, (DESK, SMALL))]
    assert found == []


def test_the_smallest_phone_has_room_for_long_words(open_tab, counter, pages):
    """Those of German: a button may break, and moves no page sideways."""
    tab = log_in(open_tab(counter.root, size=SMALL), counter)
    for path in pages:
        and_then = "&" if "?" in path else "?"
        tab.go(f"{counter.root}/merchant{path}{and_then}lang=de")
        tab.until("document.getElementById('main')")
        assert misfits(tab, SMALL[0]) == [], path


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["at a desk", "on a phone"])
def test_the_keyboard_reaches_everything_and_shows_where_it_is(
    open_tab, counter, pages, size
):
    tab = log_in(open_tab(counter.root, size=size), counter)
    faults = []
    for path in pages:
        tab.go(f"{counter.root}/merchant{path}")
        tab.until("document.getElementById('main')")
        for _ in range(MOST_PRESSES):
            tab.press("Tab")
            is_over, is_outlined, is_uncovered, what = tab.ask(FOCUSED)
            if is_over and not tab.ask(
                UNREACHED
            ):  # else it began in the middle, at a field
                break
            if not is_over and not (is_outlined and is_uncovered):
                faults.append((path, is_outlined, is_uncovered, what))
        faults += [(path, "not reached", what) for what in tab.ask(UNREACHED)]
    assert faults == []


def test_the_browsers_time_zone_is_offered_and_chosen_by_a_press_alone(
    open_tab, counter
):
    tab = log_in(open_tab(counter.root), counter)
    tab.call("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    tab.go(f"{counter.root}/merchant/settings/counting")
    tab.until("document.querySelector('#own-zone button').textContent === 'Asia/Tokyo'")
    assert (
        tab.is_shown("own-zone")
        and tab.ask("document.getElementById('timezone').value") == "UTC"
    )
    tab.click("#own-zone button")
    assert tab.ask("document.getElementById('timezone').value") == "Asia/Tokyo"
    assert not tab.is_shown("own-zone")


ONE_LINE = "document.querySelector('#sections a').offsetHeight"
MENUS = {
    "the menu of a desk is one line": ((1024, 700), "offsetHeight", ONE_LINE),
    "the bar of a phone has room for every word": (SMALL, "scrollWidth", str(SMALL[0])),
}


@pytest.mark.parametrize("case", MENUS)
def test_the_menu_fits_in_every_language(open_tab, counter, case):
    size, measure, most = MENUS[case]
    tab = log_in(open_tab(counter.root, size=size), counter)
    for language in LANGUAGES:
        tab.go(f"{counter.root}/merchant?lang={language}")
        tab.until("document.getElementById('sections')")
        assert tab.ask(f"document.getElementById('sections').{measure} === {most}"), (
            language
        )


SHEET = "navigator.share = async (it) => { window.shared = it.url; }; true"


def test_a_secret_is_copied_by_one_press(open_tab, counter):
    tab = log_in(open_tab(counter.root), counter)
    editor = open_tab("data:")
    editor.go("data:text/html,<!doctype html><textarea name=to autofocus></textarea>")
    tab.go(f"{counter.root}/merchant/keys")
    tab.click("#issue")
    tab.until("document.getElementById('secret')")
    secret = tab.text("secret")
    tab.click("[data-copy]")
    tab.until(
        "document.querySelector('[data-copy]').textContent === document.body.dataset.copied"
    )
    assert len(secret) > 20 and editor.paste() == secret


def test_a_link_is_shared_where_the_browser_has_a_sheet_and_else_copied(
    open_tab, counter
):
    page = f"{counter.root}/merchant/links/{counter.shop.link()['id']}"
    for has_sheet in (True, False):
        tab = log_in(open_tab(counter.root), counter)
        sheet = SHEET if has_sheet else "delete Navigator.prototype.share"
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=sheet)
        tab.go(page)
        tab.until("document.documentElement.classList.contains('js')")
        assert tab.is_shown("copy") and tab.is_shown("share") == has_sheet
        if has_sheet:
            tab.click("#share")
            tab.until("window.shared === document.getElementById('url').textContent")


def test_who_logged_out_sees_nothing_by_the_button_back(open_tab, counter):
    counter.shop.invoice()
    tab = log_in(open_tab(counter.root), counter)
    tab.go(f"{counter.root}/merchant/invoices")
    tab.until("document.querySelector('table')")
    tab.go(f"{counter.root}/merchant/sessions")
    tab.click("td summary")  # this device stands first
    tab.click("form[action*='/end'] button")
    tab.until("!document.getElementById('sections')")
    for _ in range(2):
        tab.ask("history.back()")
        tab.until("document.body.textContent.includes('Please log in')")
        assert not tab.ask("!!document.querySelector('table')")


FREE = (390, 664)  # of a phone, which a browser leaves
# True if all of the element can be seen, above the bar of the sections.
IS_SEEN = """((it) => {
    const box = it.getBoundingClientRect(), bar = document.getElementById('sections');
    const end = Math.min(innerHeight, bar.getBoundingClientRect().top);
    return box.top >= 0 && box.bottom <= end;
})(document.getElementById(%r))"""
MAIL = "form[action$='/settings/mail']"


@pytest.mark.parametrize(
    "script", [True, False], ids=["with a script", "without a script"]
)
def test_a_save_that_failed_shows_the_wrong_field_and_why(open_tab, counter, script):
    tab = log_in(open_tab(counter.root, size=FREE, script=script), counter)
    tab.go(f"{counter.root}/merchant/settings/mail")
    tab.until("document.getElementById('address')")
    tab.click("#address")
    tab.type("nobody")
    tab.click(f"{MAIL} button")
    tab.until("document.getElementById('refused')")
    if not script:
        assert tab.ask(IS_SEEN % "refused") and tab.ask(IS_SEEN % "address-problem")
        tab.click("#refused a")
    tab.until(f"{IS_SEEN % 'address'} && {IS_SEEN % 'address-problem'}")
    if script:
        assert tab.ask("document.activeElement.id") == "address"
