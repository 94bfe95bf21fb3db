"""The pages of payment links: what came through each, made, switched, printed."""

import re

from builders import pay
from payer import Page
from payer import made as invoice_of
from payer import press as press_link

from btcpay.merchant_pages.lists.listing import SIZE
from btcpay.merchant_pages.queries import MOST_COUNTED


def press(browser, **typed):
    return browser.post("/links", **browser.page("/links/new").values | typed)


def made(answer):
    assert answer.status_code == 303, answer.text
    pattern = r"\.\./merchant/links/(lnk_\w+)\?done=made"
    return re.fullmatch(pattern, answer.headers["Location"])[1]


def public(shop, id):
    return next(row for row in shop.get("/payment-links").json["data"] if row["id"] == id)


MADE = {
    "a title alone: any amount": ({"title": "Tip jar"}, {"amount_mode": "flexible"}),
    "a price": ({"title": "Membership", "amount": "120"}, {"amount_mode": "fixed", "title":
        "Membership", "amount_usd": 120}),
    "bounds": ({"min_amount": "5", "max_amount": "5,50"}, {"amount_mode": "flexible",
        "min_amount_usd": 5, "max_amount_usd": 5.5}),
    "lines as browsers send": ({"title": "Tea", "description": "One\r\nTwo"}, {"title": "Tea",
        "description": "One\nTwo"}),
}  # fmt: skip


def test_a_press_makes_a_link_and_shows_it(browser):
    for case, (typed, stored) in MADE.items():
        id = made(press(browser, **typed))
        link = public(browser.shop, id)
        assert link.items() >= stored.items(), case
        page = browser.page(f"/links/{id}?done=made")
        assert page.texts["url"] == page.attributes["copy"]["data-copy"] == link["link_url"]
        assert page.attributes["share"]["data-share"] == link["link_url"]
        assert browser.shop.client.get(f"/link/{id}").status_code == 200


WRONG = {
    "nothing: it would be published without a name": ({"title": ""}, "title",
        "a title or an amount"),
    "no amount": ({"amount": "x"}, "amount", "such as 25"),
    "nothing at most": ({"max_amount": "0"}, "max_amount", "above 0"),
    "bounds the wrong way round": ({"min_amount": "6", "max_amount": "5"}, "max_amount",
        "less than the smallest"),
    "dust": ({"amount": "0.17"}, "amount", "at least $0.18"),
    "dust at most": ({"max_amount": "0.17"}, "max_amount", "at least $0.18"),
    "a price and a bound": ({"amount": "6", "min_amount": "5"}, "min_amount", "price is fixed"),
}  # fmt: skip


def test_what_does_not_fit_makes_nothing_and_says_why(browser):
    for typed, field, reason in WRONG.values():
        typed = {"title": "Tip jar"} | typed
        answer = press(browser, **typed)
        page = Page(answer.text)
        assert answer.status_code == 400 and reason in page.texts[f"{field}-problem"]
        assert page.values.items() >= typed.items()
    assert press(browser, title="x" * 201).status_code == 400
    assert press(browser, description="a\0b").status_code == 400
    assert browser.shop.get("/payment-links").json["data"] == []


def test_a_press_that_comes_twice_makes_one_link(browser):
    form = browser.page("/links/new").values | {"title": "Tip jar"}
    assert made(browser.post("/links", **form)) == made(browser.post("/links", **form))
    assert made(browser.post("/links", **form | {"title": "Two"})) != made(
        browser.post("/links", **form)
    )
    assert len(browser.shop.get("/payment-links").json["data"]) == 2


def test_what_came_through_a_link_is_counted_and_listed(browser):
    shop, client = browser.shop, browser.shop.client
    link = shop.link(amount_usd=5)
    ids = [invoice_of(press_link(client, link))]
    for confirmed in (False, True):
        ids.append(invoice_of(press_link(shop.client, link)))
        pay(shop, shop.get(f"/invoices/{ids[-1]}").json, confirmed=confirmed)
    shop.invoice()  # of no link
    page = browser.page(f"/links/{link['id']}")
    assert page.texts["used"] == "Invoices: 3, paid: 1"
    assert "Invoices: 3, paid: 1" in browser.page("/links").source
    shown = re.findall(r'merchant/invoices/(\w+)"', page.source)
    assert shown == ids[::-1]
    badges = re.findall(r'data-status="(\w+)"', page.source)
    assert badges == ["active", "paid", "seen", "open"]


def test_counting_stops_where_it_would_take_long(browser):
    shop, link = browser.shop, browser.shop.link()["id"]
    shop.sql(
        "INSERT INTO invoice (id, merchant_id, payment_link_id, status, amount_sats,"  # noqa: S608
        " amount_usd_quote, price_usd, currency, price, deposit_address, script, address_index,"
        " created_at)"
        " WITH RECURSIVE n(i) AS"
        f" (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= {MOST_COUNTED})"
        f" SELECT 'inv_' || i, {shop.merchant_id}, '{link}', 'open', 1, '1', '1', 'USD', '1',"
        " 'a' || i, 's' || i, 100 + i, 1 FROM n"
    )
    page = browser.page(f"/links/{link}")
    assert page.texts["used"] == "Invoices: 500 or more, paid: 0"


def test_links_and_what_came_through_one_go_on_page_by_page(browser):
    shop = browser.shop
    ids = [shop.link(title=f"Link {number}")["id"] for number in range(SIZE + 2)]
    came = [invoice_of(press_link(shop.client, {"id": ids[0]}, str(5 + n))) for n in range(3)]
    first = browser.page("/links")
    older = next(attrs["href"] for _, attrs in first.tags if attrs.get("rel") == "next")
    second = browser.page(older.removeprefix("../merchant"))
    shown = re.findall(r"/links/(lnk_\w+)", first.source + second.source)
    assert shown == ids[::-1]
    page = browser.page(f"/links/{ids[0]}?older={came[1]}")
    assert re.findall(r"/invoices/(\w+)", page.source) == [came[0]]


def test_a_link_has_a_card_and_is_switched_off_and_on_again(browser):
    shop = browser.shop
    link = shop.link(title="Membership", description="One year", amount_usd=120)
    id = link["id"]
    page = browser.page(f"/links/{id}/card")
    assert page.texts["url"] == link["link_url"] and page.texts["description"] == "One year"
    assert "$120.00" in page.texts["card"] and "<svg" in page.source
    assert browser.post(f"/links/{id}/deactivate").headers["Location"].endswith("?done=off")
    assert shop.client.get(f"/link/{id}").status_code == 410
    assert "nobody can pay" in browser.page(f"/links/{id}/card").source
    kinds = "SELECT kind FROM public_event ORDER BY seq DESC"
    assert shop.sql(kinds).fetchone()[0] == "payment_link.deactivated"
    assert browser.post(f"/links/{id}/activate").status_code == 303
    assert shop.client.get(f"/link/{id}").status_code == 200
