"""The merchant's bills: made by a form, listed, sent, ended; lines of Today and Month."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from btcpay.values.times import from_ms
from tests.support.bills import all_bills, bill_now, new_bill, pay_now
from tests.support.builders import pay
from tests.support.databases import about_sqlite
from tests.support.payer import Page
from tests.support.statements import statements

WHOLE = {
    "amount": "19,90",
    "description": "Two bags\r\nof <coffee> & tea",
    "reference": "A-17",
    "email": " ada@example.com ",
    "due": "7",
}


def press(browser, **typed):
    return browser.post("/bills", **browser.page("/bills/new").values | typed)


def made(answer):
    assert answer.status_code == 303, answer.text
    location = answer.headers["Location"]
    return re.fullmatch(r"\.\./merchant/bills/(bil_\w+)\?done=made", location)[1]


def test_a_press_makes_what_was_typed_and_its_page_can_be_copied_mailed_and_scanned(
    browser,
):
    browser.shop.sql("UPDATE merchant SET name = 'Tom & Co'")
    id = made(press(browser, **WHOLE))
    (bill,) = all_bills(browser.shop)
    assert (bill.id, bill.amount, bill.currency, bill.every) == (
        id,
        "19.90",
        "USD",
        None,
    )
    assert bill.description == "Two bags\nof <coffee> & tea"
    assert (bill.customer_email, bill.reference) == ("ada@example.com", "A-17")
    assert 7 <= (bill.due_ms + 1 - bill.created_ms) / 86_400_000 <= 8
    page = browser.page(f"/bills/{id}?done=made")
    mail = urlsplit(page.attributes["mail"]["href"])
    text = parse_qs(mail.query)
    assert mail.path == "ada@example.com"
    assert text["subject"] == ["Bill from Tom & Co \u00b7 A-17"]
    url = f"{browser.shop.service.settings.base_url}/bill/{id}"
    assert url in text["body"][0] and "19.90" in text["body"][0]
    assert f'data-copy="{url}"' in page.source and "<svg" in page.source
    assert "Send the customer the link" in page.source


def test_a_series_begins_with_its_first(browser):
    made(press(browser, amount="25", every="month", until="2099-12-31"))
    (bill,) = all_bills(browser.shop)
    assert (bill.every, bill.series_id, bill.renews) == ("month", bill.id, 1)
    page = browser.page(f"/bills/{bill.id}")
    assert "every month \u00b7 next on" in page.texts["every"]
    assert "$0.00" in page.texts["brought"]


WRONG = {
    "no amount": ({"amount": "x"}, "amount-problem", "such as 25"),
    "dust": ({"amount": "0.10"}, "amount-problem", "at least"),
    "too much": ({"amount": "1000000.01"}, "amount-problem", "up to"),
    "no address": ({"email": "ada"}, "email-problem", "name@example.com"),
    "too long": ({"description": "x" * 501}, "problem", "description"),
    "a reference in two lines": (
        {"reference": "a\nb"},
        "reference-problem",
        "(U+000A)",
    ),
    "a description that turns": (
        {"description": "a\u202eb"},
        "description-problem",
        "(U+202E)",
    ),
    "no number of days": ({"due": "-1"}, "due-problem", "from 0 to 3650"),
    "a number of 5,000 digits": ({"due": "9" * 5000}, "due-problem", "from 0 to 3650"),
    "no date": ({"every": "week", "until": "soon"}, "until-problem", "2036-12-31"),
    "a last day that is over": (
        {"every": "week", "until": "2001-01-31"},
        "until-problem",
        "today or later",
    ),
}


def test_what_does_not_fit_makes_nothing_says_why_and_keeps_what_was_typed(browser):
    for case, (typed, place, reason) in WRONG.items():
        answer = press(browser, **WHOLE | typed)
        page = Page(answer.text)
        assert answer.status_code == 400 and reason in page.texts[place], case
        assert page.values["amount"] == (WHOLE | typed)["amount"], case
    assert all_bills(browser.shop) == []


def test_days_are_read_in_the_digits_of_the_page(browser):
    made(press(browser, amount="25", due="۱۴"))
    (bill,) = all_bills(browser.shop)
    assert bill.due_days == 14


def test_a_press_that_comes_twice_makes_one_bill(browser):
    form = browser.page("/bills/new").values | WHOLE
    assert made(browser.post("/bills", **form)) == made(browser.post("/bills", **form))
    assert len(all_bills(browser.shop)) == 1


@pytest.fixture
def three(browser):
    """A bill that is overdue, one that is due in a week, one that has ended."""
    shop = browser.shop
    late = new_bill(shop, "10", due_days=0, reference="late")
    shop.clock.move(days=2)
    due = new_bill(shop, "20", due_days=5)
    ended = new_bill(shop, "30")
    assert browser.post(f"/bills/{ended.id}/end").status_code == 303
    return late, due, ended


def test_the_list_shows_what_is_due_overdue_and_over(browser, three):
    late, due, ended = three
    shown = {
        "": {*three},
        "due": {due},
        "overdue": {late},
        "ended": {ended},
        "paid": set(),
    }
    for status, bills in shown.items():
        page = browser.page("/bills", query_string={"status": status})
        found = set(re.findall(r"merchant/bills/(bil_\w{24})", page.source))
        assert found == {bill.id for bill in bills}, status


def test_today_and_the_month_say_what_is_overdue_and_due(browser, three):
    late, due, _ = three
    assert (
        "Overdue bills: 1<" in browser.get().text
        and "Bills due: 1<" in browser.get().text
    )
    months = [f"{from_ms(bill.due_ms):%Y-%m}" for bill in (late, due)]
    texts = [
        browser.get("/month", query_string={"month": month}).text for month in months
    ]
    # of a month to come there is no page
    if months[1] <= f"{browser.shop.clock.at:%Y-%m}":
        assert "Bills due: 1 ($20.00)" in texts[1]
    assert "Overdue bills: 1 ($10.00)" in texts[0]


def test_an_invoice_leads_to_its_bill_and_its_page_back_to_it(browser):
    bill = new_bill(browser.shop)
    invoice = pay_now(browser.shop, bill)
    assert (
        f"merchant/bills/{bill.id}" in browser.page(f"/invoices/{invoice['id']}").source
    )
    back = Page(browser.shop.client.get(f"/pay/{invoice['id']}").text).attributes[
        "return"
    ]["href"]
    assert back == f"{browser.shop.service.settings.base_url}/bill/{bill.id}"


def test_the_button_leads_back_to_the_last_invoice_while_nothing_has_come(browser):
    shop = browser.shop
    bill = new_bill(browser.shop)
    first = pay_now(shop, bill, browser.client)
    assert pay_now(shop, bill, browser.client)["id"] == first["id"]
    pay(shop, first, 1000, confirmed=False)
    second = pay_now(shop, bill, browser.client)
    assert second["id"] != first["id"] and second["amount_sats"] < first["amount_sats"]


def test_the_limits_of_a_link_hold(open_shops):
    shop = open_shops(BLOCKTILL_LINK_OPEN_INVOICES="1")
    bill = new_bill(shop)
    pay_now(shop, bill, shop.app.test_client())
    answer = shop.app.test_client().post(f"/bill/{bill.id}")
    assert answer.status_code == 429 and int(answer.headers["Retry-After"]) > 0
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    answer = shop.app.test_client().post(f"/bill/{bill.id}", headers=elsewhere)
    assert answer.status_code == 403


def test_another_merchants_bill_is_not_found(browser):
    bill = new_bill(browser.shop)
    browser.log_in(browser.shop.add_merchant("other"))
    for answer in (
        browser.get(f"/bills/{bill.id}"),
        browser.post(f"/bills/{bill.id}/end"),
    ):
        assert answer.status_code == 404
    assert bill_now(browser.shop, bill).status == "open"


@about_sqlite
def test_a_page_of_bills_runs_at_most_five_statements_and_writes_nothing(
    browser, three
):
    shop = browser.shop
    series = new_bill(shop, every="week", customer_email="ada@example.com")
    pay(shop, pay_now(shop, series))
    for path in (
        "/bills",
        "/bills?status=overdue",
        "/bills/new",
        f"/bills/{series.id}",
    ):
        shop.clock.move(seconds=61)
        with statements(shop) as run:
            assert browser.get(path).status_code == 200
        assert len(run) <= 5 and all(one.startswith("SELECT") for one in run), (
            f"{path}: {run}"
        )
