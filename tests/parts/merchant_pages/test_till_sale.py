"""What a cashier and a customer type at the till: sums, notes, tips of their own."""

import re

import pytest

from tests.support.payer import Page, count


def charge(browser, amount, **typed):
    """The answer to the till's form."""
    form = browser.page("/till").values
    return browser.post("/till", **form | {"amount": amount} | typed)


def sale(browser, amount, **typed):
    """The amount and the note of the sale that this makes."""
    answer = charge(browser, amount, **typed)
    assert answer.status_code == 303, answer.text
    id = re.search(r"inv_\w+", answer.headers["Location"])[0]
    row = browser.shop.get(f"/invoices/{id}").json
    return row["amount_usd_quote"], row["description"]


SUMS = {
    "two amounts are added, and are the note": ("4.20+3", "", (7.2, "4.20 + 3.00")),
    "blanks stand anywhere": (" 4.20 + 3 ", "", (7.2, "4.20 + 3.00")),
    "a note that was typed stays": ("4.20+3", "Two teas", (7.2, "Two teas")),
    "one amount is no note": ("4.20", "", (4.2, None)),
    "each part is read as an amount is": ("4,20+$3", "", (7.2, "4.20 + 3.00")),
}


@pytest.mark.parametrize("case", SUMS)
def test_amounts_are_added(browser, case):
    typed, note, made = SUMS[case]
    assert sale(browser, typed, note=note) == made


NO_SUMS = {
    "an empty part at the end": ("4.20+", "such as 25"),
    "an empty part before": ("+5", "such as 25"),
    "a part that is no amount": ("4.20+tea", "such as 25"),
    "a part with two readings": ("1,500+2", "can be read as two amounts"),
    "a part of nothing": ("4+0", "above 0"),
    "a sum above the greatest amount": ("999999+2", "up to $1,000,000.00"),
    "more than anybody types": ("1+" * 60 + "1", "such as 25"),
    "another currency's part": ("4+\u20ac3", "another currency"),
}


@pytest.mark.parametrize("case", NO_SUMS)
def test_a_sum_that_is_not_understood_charges_nothing(browser, case):
    typed, says = NO_SUMS[case]
    answer = charge(browser, typed)
    page = Page(answer.text)
    assert answer.status_code == 400 and count(browser.shop) == 0
    assert says in page.texts["amount-problem"]
    # A button with one part's reading would charge that part alone.
    assert "readings" not in page.texts


def ask_tip(browser, amount="8.40"):
    browser.post("/tips", tips="5 10")
    answer = charge(browser, amount)
    return browser.page(answer.headers["Location"].removeprefix("../merchant"))


def test_a_customer_types_a_tip(browser):
    form = ask_tip(browser).values
    answer = browser.post("/till", **form | {"tip": "other", "tip_amount": "1,50"})
    assert answer.status_code == 303
    rows = browser.shop.sql("SELECT gratuity, amount_usd_quote FROM invoice").fetchall()
    assert [tuple(row) for row in rows] == [("1.50", "9.90")]


def test_what_is_sold_with_a_tip_is_what_was_pressed_whatever_a_person_means_by_it(
    browser, ticker
):
    """`750.000` is 750 dinars on a button, and three quarters of a million to some."""
    ticker.price("60000.00", iqd="78600000")
    browser.post("/settings/counting", currency="IQD", timezone="UTC")
    browser.post("/tips", tips="10")
    answer = charge(browser, "750,000", suggested="750.000")
    page = browser.page(answer.headers["Location"].removeprefix("../merchant"))
    assert browser.post("/till", **page.values | {"tip": "10"}).status_code == 303
    rows = browser.shop.sql("SELECT amount, gratuity FROM invoice").fetchall()
    assert [tuple(row) for row in rows] == [("825.000", "75.000")]


@pytest.mark.parametrize("typed", ["", "x", "-1", "0", "1,500", "9999999"])
def test_a_typed_tip_that_is_no_amount_is_asked_for_again(browser, typed):
    form = ask_tip(browser).values
    answer = browser.post("/till", **form | {"tip": "other", "tip_amount": typed})
    page = Page(answer.text)
    assert answer.status_code == 400 and count(browser.shop) == 0
    assert page.texts["tip-problem"].strip() and "open" in page.attributes["other-tip"]
    assert page.texts["amount"] == "$8.40"
    # What was pressed before is the same sale: it is made once.
    again = browser.post("/till", **page.values | {"tip": "10"})
    assert again.status_code == 303 and count(browser.shop) == 1


def test_no_tip_is_taken_where_none_is_offered(browser):
    assert sale(browser, "25", tip="other", tip_amount="5") == (25, None)
