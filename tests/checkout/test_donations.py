"""A donation is a link: a goal with how far it is, and an amount that its address proposes."""

import pytest

from tests.support.builders import pay
from tests.support.merchant_browser import ON, MerchantBrowser
from tests.support.payer import Page, made, press

pytestmark = pytest.mark.both_databases


@pytest.fixture
def browser(open_shops):
    return MerchantBrowser(open_shops(**ON)).log_in()


def new_link(browser, **typed):
    answer = browser.post("/links", **browser.page("/links/new").values | typed)
    assert answer.status_code == 303, answer.text
    return {"id": answer.headers["Location"].rpartition("/")[2].partition("?")[0]}


def page_of(shop, link, query=""):
    return Page(shop.client.get(f"/link/{link['id']}{query}").text)


def test_a_link_with_a_goal_shows_what_its_paid_invoices_asked_for(browser):
    shop = browser.shop
    link = new_link(browser, title="A new roof", goal="500")
    assert "$0.00 of $500.00" in page_of(shop, link).texts["goal"]
    for amount, share in (("120.10", 1), ("0.20", 1), ("50", 2)):
        invoice = shop.get(
            f"/invoices/{made(press(shop.app.test_client(), link, amount))}"
        ).json
        pay(shop, invoice, invoice["amount_sats"] // share)
    page = page_of(shop, link)
    assert "$120.30 of $500.00" in page.texts["goal"]
    assert (
        page.attributes["far"]["value"] == "120.30"
        and page.attributes["far"]["max"] == "500"
    )
    assert "$120.30 of $500.00" in browser.page(f"/links/{link['id']}").texts["goal"]
    changed = browser.page(f"/links/{link['id']}/edit").values | {"goal": ""}
    assert browser.post(f"/links/{link['id']}", **changed).status_code == 303
    assert "goal" not in page_of(shop, link).texts


def test_a_goal_is_an_amount_and_goes_with_no_fixed_price(browser):
    form = browser.page("/links/new").values | {"title": "Roof"}
    for typed in ({"goal": "much"}, {"goal": "500", "amount": "5"}):
        answer = browser.post("/links", **form | typed)
        assert answer.status_code == 400 and Page(answer.text).texts["goal-problem"]


@pytest.mark.parametrize(
    ("query", "typed"),
    [
        ("?amount=10", "10"),
        ("?amount=19.90", "19.90"),
        ("?amount=call+0800", ""),
        ("", ""),
    ],
    ids=[
        "a whole amount",
        "one with decimals",
        "what is no amount is left out",
        "nothing",
    ],
)
def test_an_address_proposes_an_amount(shop, query, typed):
    assert (
        page_of(shop, shop.link(title="Roof"), query).attributes["amount"]["value"]
        == typed
    )


def test_a_fixed_price_stays(shop):
    page = page_of(shop, shop.link(amount_usd=5), "?amount=10")
    assert page.texts["price"] == "$5.00" and "amount" not in page.attributes
