"""A merchant's lists: their pages, what a search finds, whose rows they are, what they cost."""

import re
from collections import namedtuple
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from btcpay.parts.merchant_pages import queries
from btcpay.parts.merchant_pages.lists import search
from btcpay.parts.merchant_pages.lists.sales import loose_kind
from btcpay.parts.merchant_pages.lists.search import is_match
from btcpay.web.pages import listing
from tests.support.builders import pay
from tests.support.databases import plan
from tests.support.merchant_browser import MerchantBrowser
from tests.support.paths import GONE

pytestmark = pytest.mark.both_databases

SATS = 41_667  # of an invoice that is not said to be another


def listed(text):
    """The ids that the rows of a page lead to, in their order."""
    return re.findall(r'class="what"><a href="[^"]*/invoices/(inv_\w+)', text)


def link(text, rel):
    """Where a pager's link leads, below /merchant."""
    found = re.search(rf'<a rel="{rel}" href="[^"]*?merchant([^"]*)"', text)
    return found and found[1].replace("&amp;", "&")


def walk(browser, path):
    """Page after page; the ids of each, and the path of the last."""
    pages = [listed(browser.page(path).source)]
    while following := link(browser.page(path).source, "next"):
        path = following
        pages.append(listed(browser.page(path).source))
    return pages, path


@pytest.mark.parametrize("path", ["/invoices", "/payments"])
def test_pages_lead_through_all_rows_and_to_the_newest(
    browser, clock, monkeypatch, path
):
    """Rows of the same millisecond too, and one that came meanwhile moves nothing."""
    monkeypatch.setattr(listing, "SIZE", 3)
    monkeypatch.setattr(listing, "MORE", 4)
    shop = browser.shop
    made = []
    for number in range(8):
        made.insert(0, shop.invoice()["id"])
        pay(shop, {"id": made[0], "amount_sats": SATS})
        if number % 3 == 0:
            clock.move(seconds=1)
    down, last = walk(browser, path)
    assert down == [made[:3], made[3:6], made[6:]]
    assert link(browser.page(last).source, "prev") == path
    assert link(browser.page(path).source, "prev") is None
    clock.move(seconds=1)
    pay(shop, late := shop.invoice())
    assert listed(browser.page(last).source) == made[6:]
    assert listed(browser.page(path).source) == [late["id"], *made[:2]]


def test_a_status_lists_its_own(browser):
    shop = browser.shop
    paid, opened, canceled = (shop.invoice() for _ in range(3))
    pay(shop, paid)
    browser.post(f"/invoices/{canceled['id']}/cancel")
    for status, rows in {
        "open": [opened],
        "paid": [paid],
        "canceled": [canceled],
        "expired": [],
        "": [canceled, opened, paid],
    }.items():
        shown = listed(browser.page(f"/invoices?status={status}").source)
        assert shown == [row["id"] for row in rows], status


@pytest.mark.parametrize(
    "path",
    ["/invoices?status=nonsense", "/invoices?status=Paid", "/payments?kind=x", "/invoices?day=x",
     "/payments?day=2026-02-30", "/downloads/payments?from=yesterday",
     "/downloads/payments?from=2026-11-01&to=30.11.2026", "/bills?status=late"],
)  # fmt: skip
def test_a_filter_that_is_not_understood_lists_nothing(browser, path):
    pay(browser.shop, browser.shop.invoice())
    if path.startswith("/bills") and "bills" in GONE:
        pytest.skip("the part was deleted")
    answer = browser.get(path)
    assert answer.status_code == 400 and "inv_" not in answer.text


def test_payments_without_invoice_have_a_list_of_their_own(browser):
    shop = browser.shop
    whole = shop.invoice()
    part = shop.invoice(description="a part")
    pay(shop, whole), pay(shop, part, 1_000)
    assert set(listed(browser.page("/payments").source)) == {whole["id"], part["id"]}
    assert listed(browser.page("/payments?kind=loose").source) == [part["id"]]
    assert listed(browser.page("/payments?kind=loose&q=part").source) == [part["id"]]
    pay(shop, whole, 2_000)
    pay(shop, canceled := shop.invoice(), 1_500, confirmed=False)
    browser.post(f"/invoices/{canceled['id']}/cancel", force="yes")
    pay(shop, canceled, 3_000)
    source = browser.page("/payments?kind=loose").source
    for invoice, badge in (
        (part, "part"),
        (whole, "on_top"),
        (canceled, "after_cancellation"),
    ):
        led = rf'invoices/{invoice["id"]}"><span class="badge" data-status="{badge}">'
        assert re.search(led, source), badge
        assert (
            f'data-status="{badge}"'
            in browser.page(f"/invoices/{invoice['id']}").source
        )


def test_a_sale_of_the_till_is_called_so_until_it_says_more(browser):
    browser.post("/till", amount="4")
    browser.post("/till", amount="5", note="Two teas")
    titles = re.findall(
        r'class="what"><a [^>]*>(.*?)</a>', browser.page("/invoices").source, re.S
    )
    assert [re.sub(r"<.*?>|\s*\n", "", title) for title in titles] == [
        "Two teas",
        "Till",
    ]


def found(browser, path, typed):
    """The ids found; a single one if its page is opened at once."""
    answer = browser.get(f"{path}?q={quote(typed)}")
    if answer.status_code == 303:
        return re.findall(r"inv_\w+$", answer.headers["Location"])
    assert answer.status_code == 200
    return listed(answer.text)


NAMES = {
    "an id": "{id}",
    "the beginning of an id": "{id:.9}",
    "a link to its page": "https://shop.example/pay/{id}?lang=de",
    "an address": "{deposit_address}",
    "the beginning of an address": "{deposit_address:.16}",
    "an address in capitals, as QR codes have it": "{capitals}",
    "a request to pay": "bitcoin:{deposit_address}?amount=0.1",
    "one in capitals with slashes": "BITCOIN://{capitals}?AMOUNT=0.1",
    "an address in groups of four, as pages show it": "{groups}",
    "a space of no width in an address": "{hidden}",
    "a transaction": "{txid}",
    "the beginning of a transaction's id": "{txid:.10}",
    "a block explorer's page": "https://explorer.example/tx/{txid}",
    "blanks around it": "  {id} ",
}


def test_what_names_a_row_finds_it(browser):
    shop = browser.shop
    wanted = shop.invoice()
    other = shop.invoice()
    address = wanted["deposit_address"]
    values = wanted | {"txid": pay(shop, wanted), "capitals": address.upper()}
    values["groups"] = "\u00a0".join(
        address[at : at + 4] for at in range(0, len(address), 4)
    )
    values["hidden"] = f"{address[:9]}\u200b{address[9:]}"
    pay(shop, other)
    for name, typed in NAMES.items():
        for path in ("/invoices", "/payments"):
            assert found(browser, path, typed.format(**values)) == [wanted["id"]], (
                path,
                name,
            )


def test_a_transaction_that_waits_is_found_among_invoices_alone(browser):
    waiting = browser.shop.invoice()
    txid = pay(browser.shop, waiting, confirmed=False)
    assert found(browser, "/invoices", txid) == [waiting["id"]]
    assert found(browser, "/payments", txid) == []


# A row of tea at 1234.50 euros, and whether it is found by this.
SEARCHES = {
    "tea": True,
    "POUNDS tea": True,  # all words, in any order and case
    "tea coffee": False,
    "ann@": True,
    "ord-104": True,  # a part of the order's number, too
    "1234.50": True,
    "1234,5": True,
    "١٢٣٤٫٥": True,
    "$ 1234.5": False,
    "1234,50 eur": True,
    "EUR 1234.50": True,
    "1234.50 usd": False,
    "€1234.50": True,
    "1234.50€": True,
    "€1200": True,  # its value when it was received
    "$1300": False,
    "₿0.00041667": True,
    "€41667": False,
    "41667 sat": True,
    "1234.51": False,
    "41667": True,
    "0.00041667 BTC": True,
    "0.00041668": False,
    "lee table": True,
    "1234.5 tea": False,  # no amount among words
    "%": False,
    "9" * 200: False,
}


# The columns of a row that a search reads.
Row = namedtuple(
    "Row",
    "description reference customer_email customer_name customer_note amount_sats value value_in"
    " amount_usd_quote amount currency",
)


def test_what_a_search_in_texts_finds():
    texts = "Two Pounds of Tea", "ORD-10442", "Ann@example.com", "Ann Lee", "Table 7"
    quoted = {"amount_usd_quote": "1300", "amount": "1234.50", "currency": "EUR"}
    row = Row(*texts, amount_sats=41_667, value="1200.00", value_in="EUR", **quoted)
    assert {typed: is_match(row, typed) for typed in SEARCHES} == SEARCHES
    of_interface = row._replace(amount=None, value=None)
    assert (
        is_match(of_interface, "$1300") and is_match(of_interface, "US$ 1300") is False
    )
    assert not is_match(of_interface, "€1300")


LOOSE = {
    "what came to an open invoice is a part": ("open", 1_000, 500, "part"),
    "so it is of one without a deadline": ("open", None, 500, "part"),
    "and of one that expired with too little": ("expired", 1_000, 999, "part"),
    "at the deadline it is late": ("expired", 1_000, 1_000, "late"),
    "after a cancellation": ("canceled", 1_000, 500, "after_cancellation"),
    "more than a paid one asked for": ("paid", 1_000, 5_000, "on_top"),
}


def test_why_a_payment_has_settled_nothing():
    for case, (status, expires_at, came_at, kind) in LOOSE.items():
        assert loose_kind(status, expires_at, came_at) == kind, case


def test_a_search_in_texts_says_how_far_it_went_and_goes_on_from_there(
    browser, clock, monkeypatch
):
    monkeypatch.setattr(search, "PIECE", 3)
    made = []
    for number in range(8):
        made.insert(0, browser.shop.invoice(description=f"tea {number % 2}")["id"])
        clock.move(minutes=1)
    pages = []
    path = "/invoices?q=tea+1"
    while path:
        source = browser.page(path).source
        pages.append(listed(source))
        path = link(source, "next")
        assert ("Search further back" in source) is (path is not None)
    assert pages == [[made[0], made[2]], [made[4]], [made[6]]]


BY_NAME = {
    "FOUND_INVOICES id": ("sqlite_autoindex_invoice_1", "invoice_id_begins"),
    "FOUND_INVOICES address": ("sqlite_autoindex_invoice_2", "invoice_address_begins"),
    "FOUND_INVOICES txid": ("output_txid", "output_txid"),
    "FOUND_PAYMENTS address": ("sqlite_autoindex_invoice_2", "invoice_address_begins"),
    "FOUND_PAYMENTS txid": ("output_txid", "output_txid"),
    "FOUND_INVOICES reference": ("invoice_reference", "invoice_reference"),
    "FOUND_PAYMENTS reference": ("invoice_reference", "invoice_reference"),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_what_names_a_row_is_looked_up_in_an_index(browser, name):
    """Of the databases, not of the merchant's rows: those can be a million."""
    db = browser.shop.service.db
    (found, what) = name.split()
    result = plan(db, getattr(queries, found)[what], "1")
    assert BY_NAME[name][db.is_server] in result and "newest" not in result, result


@pytest.mark.parametrize("path", ["/invoices", "/payments"])
def test_days_are_those_of_the_shops_zone_and_a_list_begins_at_one(browser, path):
    shop = browser.shop
    shop.sql("UPDATE merchant SET timezone = 'Asia/Tokyo'")
    begin = datetime(2026, 11, 23, 14, 30, tzinfo=UTC)
    made = []
    shop.clock.at = begin
    browser.log_in()
    for minutes in (0, 29, 30):  # 23:30, 23:59 and 0:00 in Tokyo
        shop.clock.at = begin + timedelta(minutes=minutes)
        pay(shop, invoice := shop.invoice())
        made.insert(0, invoice["id"])
    source = browser.page(path).source
    assert (
        source.index("Tue, Nov 24")
        < source.index("12:00")
        < source.index("Mon, Nov 23")
    )
    assert source.count("Mon, Nov 23") == source.count("Tue, Nov 24") == 1
    assert source.count("Asia/Tokyo") == 1 and " UTC" not in source
    for day, rows in {
        "2026-11-24": made,
        "2026-11-23": made[1:],
        "2026-11-22": [],
    }.items():
        assert listed(browser.page(f"{path}?day={day}").source) == rows, day
    assert listed(browser.page(f"{path}?day=9999-12-31").source) == made
    assert listed(browser.page("/payments?day=0001-01-01").source) == []
    month = browser.page("/month?month=2026-11").source
    assert re.findall(r"payments\?day=([\d-]+)", month) == ["2026-11-24", "2026-11-23"]


def test_what_needs_attention_says_when_it_was_and_whose_it_is(browser, clock):
    shop = browser.shop
    clock.at = datetime(2026, 11, 23, 14, 30, tzinfo=UTC)
    pay(shop, ann := shop.invoice(description="Tea", customer_email="ann@example.com"))
    pay(shop, ann, 50_000)
    pay(shop, sale := shop.invoice(description="<b>Cake</b>"))
    assert (
        "wanting"
        not in MerchantBrowser(shop).log_in(shop.add_merchant("b")).page().texts
    )
    pay(shop, sale, 50_000)
    for path in ("", "/attention"):
        source = browser.page(path).source
        assert source.count("Mon, Nov 23, 2026 · 2:30\u202fPM") == 2, path
        assert (
            "&lt;b&gt;Cake" in source
            and "More has arrived than was asked for" in source
        )
        assert "ann@example.com" in source and sale["id"][:12] in source, path
        assert f">{ann['id'][:12]}" not in source, path


def test_headings_and_columns_call_the_rows_sales_as_the_menu_does(browser):
    """The record itself, with its number, is called an invoice."""
    shop = browser.shop
    link_id = shop.link(title="Tips")["id"]
    pay(shop, late := shop.invoice())
    pay(shop, late)  # too much
    for _ in range(6):
        pay(shop, shop.invoice(), confirmed=False)
    paths = ("", "/invoices", "/payments", "/links", f"/links/{link_id}")
    for path in (*paths, "/invoices?status=canceled"):
        source = browser.page(path).source
        labels = re.findall(r"<(?:h\d|th|dt)\b[^>]*>.*?</(?:h\d|th|dt)>", source)
        labels += re.findall(r'<p class="(?:more|empty)">.*?</p>', source)
        labels += re.findall(r'<dd class="quiet">.*?</dd>', source)
        texts = [re.sub("<[^>]*>", " ", label) for label in labels]
        assert [text for text in texts if "invoice" in text.lower()] == [], path
    assert "No sales were found." in source
    assert "All open sales" in browser.page().source
