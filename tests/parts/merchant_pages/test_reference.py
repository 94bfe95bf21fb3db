"""The number of a shop's order: whatever it is, it comes back as it is wherever it is shown."""

import csv
import io
from decimal import Decimal
from html import unescape
from urllib.parse import quote

import pytest

from btcpay.exports.csv_file import csv_lines, defuse
from btcpay.exports.labels import labels
from btcpay.exports.payments import payment_records
from btcpay.invoices import create, orders, quotes
from btcpay.notify.events import events_after
from btcpay.values.errors import CommandError
from btcpay.values.texts import checked_line
from btcpay.web.pages.listing import SIZE
from schemas.resources import Resources
from storage.queries import merchants
from storage.statement import as_dict
from tests.support.builders import pay
from tests.support.fake_esplora import Terminal
from tests.support.payer import Page

REFERENCES = {
    "a number": "10442",
    "a number that an amount may be": "25",
    "a formula": "=1+1",
    "a formula behind a separator": "7;=1+1",
    "markup": "<script>alert(1)</script>&amp;",
    "what ends an attribute": "\"'><img src=x>",
    "letters that are written from right to left": "הזמנה 7",
    "an encoded word of mails": "=?utf-8?q?7=0ABcc:_eve@example.com?=",
    "what a template would fill in": "{{ 7 }} %(amount)s {invoice}",
    "what looks like an invoice's id": "inv_2026",
    "what looks like an address": "bc1qorder7",
    "a space without width, as between words of Thai": "7\u200b7",
    "as long as may be": "№" * 200,
}
REFUSED = {
    "nothing": "",
    "blanks": "  ",
    "one character too many": "7" * 201,
    "a line end": "7\nBcc: eve@example.com",
    "a null": "7\x00",
    "an escape sequence of terminals": "\x1b[2J7",
    "a mark that turns writing around": "7\u202e0001",
    "a mark from right to left": "\u200f7",
    "an isolate that nothing ends": "7\u2067",
    "half of a character": "7\ud800",
    "a byte order mark": "\ufeff7",
}


def order(shop, reference, merchant_id=None):
    """An invoice of 5 USD with the number of an order."""
    service = shop.service
    db = shop.service.db
    now = shop.clock()
    merchant_id = merchant_id or shop.merchant_id
    wanted = {"amount_usd": Decimal(5), "description": "Tea", "reference": reference}
    quote = quotes.quote(service.prices, now, orders.order_of(merchant_id, wanted))
    with db.write():
        return as_dict(create.new_invoice(db, service.settings.network, now, quote))


def test_what_is_no_line_of_print_is_refused(shop):
    for text in REFUSED.values():
        with pytest.raises(CommandError, match="the reference"):
            checked_line("reference", text)
    terminal = Terminal(shop)
    for words in (
        ["--reference", REFUSED["a line end"]],
        ["--return", "javascript:alert(1)"],
    ):
        said = terminal.run(
            "invoice", "create", "shop", "--usd", "5", *words, status=1
        )[1]
        assert said.startswith("blocktill: ") and len(said.splitlines()) == 1
    assert shop.sql("SELECT MAX(next_index) FROM merchant").fetchone()[0] == 0


def test_a_reference_comes_back_as_it_was_wherever_it_is_shown(shop, browser):
    db = shop.service.db
    made = {}
    for text in REFERENCES.values():
        invoice = made[text] = order(shop, text)
        path = f"/pay/{invoice['id']}"
        assert Page(shop.client.get(path).text).texts["reference"] == text
        pay(shop, invoice)
        assert Page(shop.client.get(path).text).texts["reference"] == text
        for place in ("/invoices", "/payments"):
            answer = browser.get(f"{place}?q={quote(text)}")
            assert invoice["id"] in (answer.headers.get("Location") or answer.text), (
                place,
                text,
            )
        assert browser.page(f"/invoices/{invoice['id']}").texts["reference"] == text
    lists = (
        unescape(browser.page("/invoices").source),
        unescape(browser.page("/payments").source),
    )
    merchant = db.get(merchants.BY_ID, id=shop.merchant_id)
    lines = csv.DictReader(
        io.StringIO("".join(csv_lines(payment_records(db, merchant))), newline="")
    )
    cells = {line["invoice_id"]: line["reference"] for line in lines}
    called = {label["ref"]: label["label"] for label in labels(db, merchant)}
    said = {}
    for event in events_after(db, Resources(""), 0):
        said.setdefault(event.data["invoice"]["id"], []).append(event.data["reference"])
    for text, invoice in made.items():
        assert all(f">{text[:70]}" in shown for shown in lists)
        assert cells[invoice["id"]] == defuse(text)
        assert called[invoice["deposit_address"]] == f"{text} Tea"
        assert said[invoice["id"]] == [text] * 3  # made, received, paid


@pytest.mark.both_databases
def test_all_invoices_of_one_number_are_found_the_newest_first_and_no_other_merchants(
    shop, browser, clock
):
    rival = shop.add_merchant("rival")
    made = []
    for merchant_id in (shop.merchant_id, rival, shop.merchant_id):
        made.insert(0, order(shop, "A 7", merchant_id)["id"])
        clock.move(seconds=1)
    shop.invoice(description="A 7 in a text is not its number")
    source = browser.page("/invoices?q=A+7").source
    assert made[1] not in source and "in a text" not in source
    assert 0 < source.index(made[0]) < source.index(made[2])
    assert "in a text" in browser.page("/invoices?q=7+A").source
    for _ in range(SIZE):
        made.insert(0, order(shop, "A 7")["id"])
    first = browser.page("/invoices?q=A+7").source
    assert made[SIZE - 1] in first and made[SIZE] not in first
    older = browser.page(f"/invoices?q=A+7&older={made[SIZE - 1]}").source
    assert older.index(made[SIZE]) < older.index(made[SIZE + 2])
