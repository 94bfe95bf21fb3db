"""The root of the service: whose it is, for a person; programs find nothing there."""

import pytest
from payer import Page

from btcpay.merchants.merchants import find_merchant, set_brand

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_a_browser_is_shown_whose_service_it_is_and_what_to_do(shop):
    page = Page(shop.client.get("/?lang=de", headers=BROWSER).text)
    assert (
        "<title>Zahlung \u00b7 shop</title>" in page.source
        and page.texts["brand"].strip() == "shop"
    )
    assert "Link, den Sie vom Verkäufer bekommen haben" in page.source


def test_of_several_merchants_none_is_named(shop):
    shop.add_merchant("bakery")
    answer = shop.client.get("/", headers=BROWSER)
    page = Page(answer.text)
    assert answer.status_code == 200 and "Bitcoin payments are received here." in page.source
    assert "brand" not in page.texts and "bakery" not in page.source


def test_a_page_that_sends_to_the_seller_says_how_to_reach_whoever_that_is(shop):
    db = shop.service.db
    set_brand(db, find_merchant(db, "shop").id, {"contact": "+49 30 12345"})
    link = shop.link(amount_usd=5)
    shop.sql("UPDATE payment_link SET status = 'inactive'")
    ended, unknown = f"/link/{link['id']}", f"/pay/inv_{'a' * 24}"
    for path, status in ((ended, 410), (unknown, 404)):
        answer = shop.client.get(path)
        assert answer.status_code == status
        assert Page(answer.text).texts["contact"].strip() == "+49 30 12345", path
    shop.add_merchant("bakery")
    assert "12345" in shop.client.get(ended).text and "12345" not in shop.client.get(unknown).text


@pytest.mark.parametrize("accept", ["*/*", "application/json", ""])
def test_a_program_finds_nothing(shop, accept):
    answer = shop.client.get("/", headers={"Accept": accept})
    assert (answer.status_code, answer.json["error"]["code"]) == (404, "not_found")
