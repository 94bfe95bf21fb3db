"""An invoice for a customer who is not there: the form, and how its page gets to the customer."""

import re
from urllib.parse import parse_qs, urlsplit

from payer import Page, count

HOUR_MS = 3_600_000
WHOLE = {
    "amount": "19,90",
    "description": "Two bags\r\nof <coffee> & tea",
    "reference": "A-17",
    "email": " ada@example.com ",
    "lasts": "72",
}


def press(browser, **typed):
    return browser.post("/invoices", **browser.page("/invoices/new").values | typed)


def made(answer):
    assert answer.status_code == 303, answer.text
    location = answer.headers["Location"]
    return re.fullmatch(r"\.\./merchant/invoices/(inv_\w+)\?done=made", location)[1]


def test_a_press_makes_what_was_typed_and_its_page_can_be_copied_mailed_and_scanned(browser):
    browser.shop.sql("UPDATE merchant SET name = 'Tom & Co'")
    id = made(press(browser, **WHOLE))
    found = browser.shop.get(f"/invoices/{id}").json
    assert (found["amount_usd_quote"], found["description"]) == (
        19.9,
        "Two bags\nof <coffee> & tea",
    )
    assert found["customer_email"] == "ada@example.com"
    row = browser.shop.sql("SELECT reference, expires_at - created_at FROM invoice").fetchone()
    assert tuple(row) == ("A-17", 72 * HOUR_MS)
    page = browser.page(f"/invoices/{id}?done=made")
    mail = urlsplit(page.attributes["mail"]["href"])
    text = parse_qs(mail.query)
    assert mail.path == "ada@example.com" and text["subject"] == [
        "Invoice from Tom & Co \u00b7 A-17"
    ]
    assert text["body"][0].endswith(f"\r\n\r\n{found['pay_url']}")
    assert "19.90" in text["body"][0] and "of <coffee> & tea" in text["body"][0]
    assert f'data-copy="{found["pay_url"]}"' in page.source and "<svg" in page.source
    assert "Send its page" in page.source


def test_without_a_deadline_it_never_ends_and_by_default_after_a_day(browser):
    made(press(browser, amount="25"))
    made(press(browser, amount="25", lasts="never"))
    lives = browser.shop.sql("SELECT expires_at - created_at FROM invoice ORDER BY address_index")
    assert [life for (life,) in lives] == [24 * HOUR_MS, None]


WRONG = {
    "no amount": ({"amount": "x"}, "amount-problem", "such as 25"),
    "dust": ({"amount": "0.10"}, "amount-problem", "at least"),
    "too much": ({"amount": "1000000.01"}, "amount-problem", "up to"),
    "no address": ({"email": "ada"}, "email-problem", "name@example.com"),
    "too long": ({"description": "x" * 501}, "problem", "description"),
    "a reference in two lines": ({"reference": "a\nb"}, "problem", "reference"),
    "no deadline of ours": ({"lasts": "9"}, "problem", "deadline"),
}


def test_what_does_not_fit_makes_nothing_says_why_and_keeps_what_was_typed(browser):
    for case, (typed, place, reason) in WRONG.items():
        answer = press(browser, **WHOLE | typed)
        page = Page(answer.text)
        assert answer.status_code == 400 and reason in page.texts[place], case
        assert page.values["amount"] == (WHOLE | typed)["amount"], case
    assert count(browser.shop) == 0


def test_a_press_that_comes_twice_makes_one_invoice(browser):
    form = browser.page("/invoices/new").values | WHOLE
    assert made(browser.post("/invoices", **form)) == made(browser.post("/invoices", **form))
    assert count(browser.shop) == 1
