"""`blocktill bill`: made, listed, shown and ended on the command line."""

import pytest

from tests.support.bills import all_bills

WORDS = ("--amount", "19.90", "--currency", "eur", "--email", "ada@example.com")
MORE = ("--reference", "A-17", "--description", "Tea", "--due", "7", "--every", "month")


def test_a_bill_is_made_listed_shown_and_ended(till, blocktill, ticker):
    ticker.price("60000.00", eur="50000.00")
    made = blocktill.json(
        "bill", "create", "shop", *WORDS, *MORE, "--until", "2099-12-31"
    )
    assert (made["amount"], made["currency"], made["missing"]) == (
        "19.90",
        "EUR",
        "19.90",
    )
    assert made["merchant"] == "shop"
    assert made["bill_url"] == f"{till.settings.base_url}/bill/{made['id']}"
    (bill,) = all_bills(till.shop)
    assert (bill.due_days, bill.every, bill.until_day) == (7, "month", 47_481)
    (listed,) = blocktill.json("bill", "list")
    assert (listed["id"], listed["status"], listed["reference"]) == (
        bill.id,
        "open",
        "A-17",
    )
    page = till.shop.client.post(f"/bill/{bill.id}").headers["Location"]
    shown = blocktill.json("bill", "show", bill.id)
    assert (
        listed == {name: shown[name] for name in listed}
        and listed["merchant"] == "shop"
    )
    assert (listed["amount"], listed["paid"]) == ("19.90", "0.00")
    assert shown == made | {"invoices": [page.removeprefix("../pay/")]}
    text = blocktill.run("bill", "show", bill.id)[0]
    assert "amount: 19.90\n" in text and f"invoices: {shown['invoices'][0]}" in text
    blocktill.run("bill", "end", bill.id)
    assert blocktill.json("bill", "show", bill.id)["status"] == "ended"


def test_without_words_it_is_due_in_a_fortnight_and_its_page_is_printed(
    till, blocktill
):
    id, url = blocktill.run("bill", "create", "shop", "--amount", "25")[0].split()
    (bill,) = all_bills(till.shop)
    assert (bill.id, bill.due_days, bill.every) == (id, 14, None)
    assert (
        till.shop.client.get(url.removeprefix(till.settings.base_url)).status_code
        == 200
    )


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("create", "shop", "--amount", "0.10"), 1, "less than 0.18"),
        (("create", "shop", "--amount", "1.234", "--currency", "EUR"), 2, "2 decimals"),
        (("create", "shop", "--amount", "x"), 2, "--amount"),
        (("create", "shop", "--amount", "1000000.01"), 1, "more than 1,000,000 USD"),
        (
            ("create", "shop", "--amount", "5", "--email", "not an address"),
            1,
            "is not an address",
        ),
        (
            ("create", "shop", "--amount", "5", "--email", "a@x.example,b@x.example"),
            1,
            "is not",
        ),
        (("create", "shop", "--amount", "5", "--reference", "a\nb"), 1, "reference"),
        (
            ("create", "shop", "--amount", "5", "--until", "2026-12-31"),
            2,
            "goes with --every",
        ),
        (("create", "shop", "--amount", "5", "--every", "day"), 2, "week"),
        (
            ("create", "shop", *MORE, "--amount", "5", "--until", "2001-01-31"),
            1,
            "is over",
        ),
        (("create", "nobody", "--amount", "5"), 1, "nobody"),
        (("show", "bil_x"), 1, "no bill"),
        (("end", "bil_x"), 1, "no bill"),
    ],
)
def test_the_bill_command_refuses_what_cannot_be(
    blocktill, ticker, words, status, said
):
    ticker.price("60000.00", eur="50000.00")
    assert said in blocktill.run("bill", *words, status=status)[1]
