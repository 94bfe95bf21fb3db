"""The pages of payment links: what came through each, made, switched, printed."""

import re

import pytest

from storage.queries import links
from storage.statement import as_dict
from tests.support.builders import pay
from tests.support.payer import Page
from tests.support.payer import made as invoice_of
from tests.support.payer import press as press_link


def press(browser, **typed):
    return browser.post("/links", **browser.page("/links/new").values | typed)


def made(answer):
    assert answer.status_code == 303, answer.text
    pattern = r"\.\./merchant/links/(lnk_\w+)\?done=made"
    return re.fullmatch(pattern, answer.headers["Location"])[1]


def public(shop, id):
    return next(
        row for row in shop.get("/payment-links").json["data"] if row["id"] == id
    )


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
        assert (
            page.texts["url"]
            == page.attributes["copy"]["data-copy"]
            == link["link_url"]
        )
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
    "a price and a suggestion": ({"amount": "6", "suggested-1": "5"}, "suggested-1",
        "price is fixed"),
    "a price and a bound": ({"amount": "6", "min_amount": "5"}, "min_amount", "price is fixed"),
    "a suggestion beyond the limits": ({"max_amount": "50", "suggested-1": "51"}, "suggested-1",
        "within the limits"),
    "the same twice": ({"suggested-1": "5", "suggested-2": "5.00"}, "suggested-1", "only once"),
    "a title that turns": ({"title": "a\u202eb"}, "title", "cannot be seen (U+202E)"),
    "a title that shows nothing": ({"title": "\u200d"}, "title", "title or an amount"),
    "a long title": ({"title": "x" * 201}, "title", "at most 200 characters"),
    "a suggestion that is dust": ({"suggested-2": "0.17"}, "suggested-2", "at least $0.18"),
}  # fmt: skip


def test_what_does_not_fit_makes_nothing_and_says_why(browser):
    for typed, field, reason in WRONG.values():
        typed = {"title": "Tip jar"} | typed
        answer = press(browser, **typed)
        page = Page(answer.text)
        assert answer.status_code == 400 and reason in page.texts[f"{field}-problem"]
        assert page.values.items() >= typed.items()
    for description in ("a\0b", "a\u2066b", "x" * 501):
        answer = press(browser, title="Tip jar", description=description)
        assert (
            answer.status_code == 400
            and "description-problem" in Page(answer.text).texts
        )
    assert browser.shop.get("/payment-links").json["data"] == []
    link = browser.shop.link(title="Tips", max_amount_usd=50)
    page = Page(change(browser, link["id"], **{"suggested-1": "51"}).text)
    assert "within the limits" in page.texts["suggested-1-problem"]
    assert page.attributes["new-link"]["action"].endswith(f"/links/{link['id']}")
    assert public(browser.shop, link["id"]) == link


SUGGESTED = {"suggested-1": "5", "suggested-3": "19,90"}
ASKED = {"ask_email": "must", "ask_name": "may", "ask_note": "no"}


def change(browser, id, **typed):
    page = browser.page(f"/links/{id}/edit")
    return browser.post(f"/links/{id}", **page.values | ASKED | typed)


@pytest.mark.both_databases
def test_texts_limits_suggestions_and_questions_are_set_and_changed(browser, ticker):
    shop = browser.shop
    ticker.price("60000.00", eur="54000.00")
    browser.post("/settings/counting", currency="EUR", timezone="UTC")
    id = made(press(browser, title="Tips", max_amount="1.000,00", **SUGGESTED, **ASKED))
    page = browser.page(f"/links/{id}/edit?lang=de")
    shown = {"max_amount": "1.000,00", "suggested-1": "5,00", "suggested-2": "19,90"}
    assert page.values.items() >= (shown | {"suggested-3": ""}).items()
    before = row_of(shop, id)
    answer = change(browser, id, title="Tea", description="a\r\nb", ask_note="may")
    assert answer.status_code == 303 and answer.headers["Location"].endswith(
        "?done=changed"
    )
    after = row_of(shop, id)
    texts = {"title": "Tea", "description": "a\nb", "ask_note": "may"}
    assert as_dict(after) == as_dict(before) | texts
    assert (after.suggested, after.ask_email, after.max_amount) == (
        "5 19.90",
        "must",
        "1000.00",
    )
    limits = {"min_amount": "10", "suggested-1": "", "suggested-2": "20"}
    assert change(browser, id, **limits).status_code == 303
    after = row_of(shop, id)
    assert (after.min_amount, after.suggested, after.currency) == ("10", "20", "EUR")
    assert public(shop, id)["min_amount_usd"] == pytest.approx(
        10 * 60000 / 54000, abs=0.01
    )


def row_of(shop, id):
    return shop.service.db.get(links.ANY_BY_ID, id=id)


def test_a_fixed_price_stays_and_a_text_is_changed_without_a_price(browser, ticker):
    shop = browser.shop
    fixed = shop.link(amount_usd=5, title="Tea")
    flexible = shop.link(max_amount_usd=50)
    ticker.status = 503
    shop.clock.move(minutes=10)
    more = {"amount": "6", "min_amount": "1", "suggested-1": "7"}
    assert change(browser, fixed["id"], title="", **more).status_code == 303
    assert public(shop, fixed["id"]) == fixed | {"title": None}
    assert change(browser, flexible["id"], title="Tips").status_code == 303
    assert (
        change(browser, flexible["id"], title="Tips", max_amount="60").status_code
        == 503
    )
    assert public(shop, flexible["id"]) == flexible | {"title": "Tips"}


def test_a_press_that_comes_twice_makes_one_link(browser):
    form = browser.page("/links/new").values | {"title": "Tip jar"}
    assert made(browser.post("/links", **form)) == made(browser.post("/links", **form))
    assert made(browser.post("/links", **form | {"title": "Two"})) != made(
        browser.post("/links", **form)
    )
    assert len(browser.shop.get("/payment-links").json["data"]) == 2


def test_what_came_through_a_link_is_counted_and_listed(browser):
    shop = browser.shop
    client = browser.shop.client
    link = shop.link(amount_usd=5)
    ids = [invoice_of(press_link(client, link))]
    for confirmed in (False, True):
        ids.append(invoice_of(press_link(shop.client, link)))
        pay(shop, shop.get(f"/invoices/{ids[-1]}").json, confirmed=confirmed)
    shop.invoice()  # of no link
    page = browser.page(f"/links/{link['id']}")
    assert page.texts["used"] == "Sales: 3, paid: 1"
    assert "Sales: 3, paid: 1" in browser.page("/links").source
    shown = re.findall(r'merchant/invoices/(\w+)"', page.source)
    assert shown == ids[::-1]
    badges = re.findall(r'data-status="(\w+)"', page.source)
    assert badges == ["active", "paid", "seen", "open"]


def test_links_and_what_came_through_one_go_on_page_by_page(browser):
    shop = browser.shop
    ids = [shop.link(title=f"Link {number}")["id"] for number in range(3)]
    came = [
        invoice_of(press_link(shop.client, {"id": ids[0]}, str(5 + n)))
        for n in range(3)
    ]
    for path, shown in (("/links", ids[::-1]), (f"/links?older={ids[1]}", [ids[0]])):
        assert re.findall(r"/links/(lnk_\w+)", browser.page(path).source) == shown
    page = browser.page(f"/links/{ids[0]}?older={came[1]}")
    assert re.findall(r"/invoices/(\w+)", page.source) == [came[0]]


def test_a_link_has_a_card_and_is_switched_off_and_on_again(browser):
    shop = browser.shop
    link = shop.link(title="Membership", description="One year", amount_usd=120)
    id = link["id"]
    page = browser.page(f"/links/{id}/card")
    assert (
        page.texts["url"] == link["link_url"]
        and page.texts["description"] == "One year"
    )
    assert "$120.00" in page.texts["card"] and "<svg" in page.source
    assert (
        browser.post(f"/links/{id}/deactivate")
        .headers["Location"]
        .endswith("?done=off")
    )
    assert shop.client.get(f"/link/{id}").status_code == 410
    assert "nobody can pay" in browser.page(f"/links/{id}/card").source
    kinds = "SELECT kind FROM public_event ORDER BY seq DESC"
    assert shop.sql(kinds).fetchone()[0] == "payment_link.deactivated"
    assert browser.post(f"/links/{id}/activate").status_code == 303
    assert shop.client.get(f"/link/{id}").status_code == 200
