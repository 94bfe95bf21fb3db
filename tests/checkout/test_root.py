"""The root of the service: whose it is, for a person; programs find nothing there."""

import pytest
from payer import Page

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


@pytest.mark.parametrize("accept", ["*/*", "application/json", ""])
def test_a_program_finds_nothing(shop, accept):
    answer = shop.client.get("/", headers={"Accept": accept})
    assert (answer.status_code, answer.json["error"]["code"]) == (404, "not_found")
