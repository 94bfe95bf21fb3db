"""The inbox of invoices that need the merchant: its order, its words, and one press for many."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from btcpay.parts.merchant_pages import attention as attention_page
from tests.support.builders import at_once, pay
from tests.support.merchant_browser import FROM_THIS_SITE
from tests.support.payer import Page

pytestmark = pytest.mark.both_databases
SATS_PER_DOLLAR = 5 * 10**8 // 300_000  # at 60,000 USD a bitcoin, down


def too_much(shop, dollars, **fields):
    """An invoice that is paid, with so much on top."""
    invoice = shop.invoice(amount_usd=25, **fields)
    pay(shop, invoice, invoice["amount_sats"] + dollars * SATS_PER_DOLLAR)
    return invoice["id"]


def short(shop, dollars):
    """One that expired with so much of 25 dollars."""
    invoice = shop.invoice(amount_usd=25, expires_in_hours=1)
    pay(shop, invoice, dollars * SATS_PER_DOLLAR)
    shop.sql("UPDATE invoice SET status = 'expired', finished_ms = created_ms + 1")
    pay(shop, invoice, SATS_PER_DOLLAR)
    return invoice["id"]


def listed(source):
    return re.findall(r'id="about-(inv_\w+)"', source)


def words(text):
    return " ".join(text.split())


def test_the_most_at_stake_comes_first_and_the_menu_counts(browser, monkeypatch):
    shop = browser.shop
    assert "inbox" not in browser.page("/till").texts
    made = {dollars: too_much(shop, dollars) for dollars in (2, 9, 1, 4)}
    page = browser.page("/attention")
    assert listed(page.source) == [made[dollars] for dollars in (9, 4, 2, 1)]
    assert "Only the first" not in page.source
    monkeypatch.setattr(attention_page, "NEEDING", 3)
    page = browser.page("/attention").source
    assert listed(page) == [made[dollars] for dollars in (9, 4, 2)]
    assert "Only the first 3 are shown." in page
    assert words(browser.page("/invoices").texts["inbox"]) == "Needs attention 4"


def test_a_row_says_the_difference_and_a_mail_to_the_customer_is_prepared(browser):
    shop = browser.shop
    part = short(shop, 20)
    more = too_much(shop, 3, customer_email="ann@example.com", description="Tea")
    shop.sql(
        "INSERT INTO merchant_mail (merchant_id, address, receipts, evening, language)"
        " VALUES (1, NULL, 0, 0, 'de')"
    )
    page = browser.page("/attention")
    assert listed(page.source) == [part, more]
    assert (
        "20.99" in page.texts[f"about-{part}"] and "4.01" in page.texts[f"about-{part}"]
    )
    assert (
        "3.00" in page.texts[f"about-{more}"]
        and "28.00" not in page.texts[f"about-{more}"]
    )
    (link,) = (named["href"] for _, named in page.tags if named.get("class") == "mail")
    mail = urlsplit(link)
    said = parse_qs(urlsplit(link).query)
    assert (mail.scheme, mail.path) == ("mailto", "ann@example.com")
    assert "Zahlung" in said["subject"][0] and f"/pay/{more}" in said["body"][0]


def test_one_press_sets_aside_all_below_an_amount_and_each_once(browser):
    shop = browser.shop
    small = [too_much(shop, dollars) for dollars in (1, 2)]
    large = too_much(shop, 9)
    form = {"token": browser.token(), "amount": "5", "currency": "USD"}
    wrong = browser.post("/attention/set-aside", amount="five")
    assert wrong.status_code == 400 and "below-problem" in Page(wrong.text).texts
    cookie = browser.client.get_cookie("merchant").value

    def once(_):
        client = shop.client
        client.set_cookie("merchant", cookie)
        answer = client.post(
            "/merchant/attention/set-aside", data=form, headers=FROM_THIS_SITE
        )
        return int(parse_qs(urlsplit(answer.headers["Location"]).query)["number"][0])

    assert sum(at_once(4, once)) == 2
    assert listed(browser.page("/attention").source) == [large]
    notes = "SELECT COUNT(*) FROM event WHERE kind = 'dismissed'"
    assert shop.sql(notes).fetchone()[0] == len(small)
    assert "Set aside: 2" in browser.page("/attention?done=aside&number=2").source
