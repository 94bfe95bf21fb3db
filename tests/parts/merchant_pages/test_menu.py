"""The menu: five tabs on a phone, the rest on the page More, one line at a desk."""

import re

from tests.support.builders import pay
from tests.support.paths import GONE


def menu(page):
    """The names of the menu, in their order, and those of a phone's tabs."""
    bar = page.source.split('<nav id="sections"')[1].split("</nav>")[0]
    links = re.findall(r"<a ([^>]*)>.*?<span>(.*?)</span>", bar, re.S)
    names = [name for _, name in links]
    tabs = [name for attributes, name in links if "below-more" not in attributes]
    return names, tabs


def test_a_phone_has_five_tabs_and_the_others_are_below_more(browser):
    names, tabs = menu(browser.page())
    own = ["Today", "Till", "Sales", "Bills", "More"]
    below = ["Refunds", "Links", "Month", "Settings"]
    if "bills" in GONE:
        own.remove("Bills")
    if "refunds" in GONE:
        below.remove("Refunds")
    assert tabs == own and names == own + below
    more = browser.page("/more").source
    listed = more.split('<nav id="more-sections"')[1].split("</nav>")[0]
    assert re.findall("<span>(.*?)</span>", listed) == below


def test_the_tab_of_a_page_below_more_is_more(browser):
    for path in ("/links", "/month", "/settings"):
        assert browser.page(path).attributes["more-tab"]["aria-current"] == "true", path
    assert browser.page("/more").attributes["more-tab"]["aria-current"] == "page"
    assert "aria-current" not in browser.page("/invoices").attributes["more-tab"]


def test_a_sale_says_how_many_payments_it_has(browser):
    shop = browser.shop
    pay(shop, twice := shop.invoice())
    pay(shop, twice, 1_000, confirmed=False)
    shop.invoice()
    source = browser.page("/invoices").source
    assert re.findall(r'class="quiet became">(.*?)</span>', source) == ["2 payments"]
