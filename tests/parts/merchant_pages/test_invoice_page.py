"""An invoice's page: its story in words, and what its merchant decides there, once."""

from pathlib import Path

import pytest

from btcpay.invoices.explain import ADVICE
from btcpay.invoices.manual import MAX_REASON_CHARACTERS
from btcpay.parts.merchant_pages import invoice as invoice_page
from btcpay.parts.merchant_pages.attention import ONLY_SET_ASIDE
from btcpay.settlement.attention import REASONS
from storage.queries.events import Kind
from tests.support.attention_cases import NAMES, WAYS, dust_missing, late, vanished
from tests.support.builders import pay
from tests.support.merchant_browser import MerchantBrowser
from tests.support.paths import PROJECT

WORDS = "btcpay/parts/merchant_pages/templates/merchant/{}.html"


@pytest.fixture
def browser(till):
    return MerchantBrowser(till.shop).log_in()


def words(text):
    return " ".join(text.split())


def why(browser, invoice):
    return browser.page(f"/invoices/{invoice['id']}").texts["why"].strip()


def has(browser, invoice, button):
    """True if the page has the form of that button."""
    path = f"/invoices/{invoice['id']}"
    return f"{path}/{button}" in browser.page(path).source


def decide(browser, invoice, what, **fields):
    """Presses a button, and follows to the page that then says what was done."""
    answer = browser.post(f"/invoices/{invoice['id']}/{what}", **fields)
    assert answer.status_code == 303
    landed = answer.headers["Location"].rpartition("merchant")[2]
    return browser.page(landed).source


def test_a_story_from_the_first_sight_to_the_receipt(till, browser):
    invoice = till.shop.invoice(
        description="two <b>bags</b>", customer_email="ann@example.com"
    )
    source = browser.page(f"/invoices/{invoice['id']}").source
    assert (
        "two &lt;b&gt;bags&lt;/b&gt;" in source and "mailto:ann@example.com" in source
    )
    assert (
        f"../../pay/{invoice['id']}" in source and invoice["deposit_address"] in source
    )
    assert why(browser, invoice) == "Nothing has been seen at its address yet."
    till.pay(invoice, 20_000)
    till.look_for(invoice)
    assert why(browser, invoice).startswith("Part of it has arrived. $13.00 is missing")
    page = browser.page(f"/invoices/{invoice['id']}")
    assert words(page.texts["asked"]).startswith("Asked for $25.00 0.00041667 BTC at")
    assert words(page.texts["came-in"]).startswith("Received $12.00 0.00020000 BTC")
    assert words(page.texts["missing"]) == "Missing $13.00 0.00021667 BTC"
    assert page.source.index('id="cancel"') < page.source.index('id="history"')
    txid = till.pay(invoice, 21_667)
    till.look_for(invoice)
    assert why(browser, invoice).endswith("once it is confirmed: 0 of 1.")
    assert "receipt-number" not in browser.page(f"/invoices/{invoice['id']}").texts
    till.mine_and_check()
    assert why(browser, invoice) == "Paid in full and confirmed."
    page = browser.page(f"/invoices/{invoice['id']}")
    assert page.texts["receipt-number"] == "1"
    source = page.source
    assert (
        txid in source
        and "The invoice is paid." in source
        and "Open the receipt" in source
    )
    assert not has(browser, invoice, "cancel") and not has(browser, invoice, "accept")


@pytest.mark.parametrize(
    ("way", "reason"), list(zip(WAYS, NAMES, strict=True)), ids=NAMES
)
def test_what_needs_the_merchant_says_why_and_is_decided_once(
    till, browser, way, reason
):
    """Every button that is offered is taken, on the list and on the page."""
    invoice = way(till)
    shown = browser.page("/attention").source
    kinds = till.kinds(invoice)
    assert shown.count(f'id="about-{invoice["id"]}"') == 1
    can_accept = reason not in ONLY_SET_ASIDE
    assert (
        has(browser, invoice, "accept")
        is (f"{invoice['id']}/accept" in shown)
        is can_accept
    )
    assert has(browser, invoice, "set-aside") and f"{invoice['id']}/set-aside" in shown
    what, done, kind = (
        ("accept", "Accepted:", "paid")
        if can_accept
        else ("set-aside", "Set aside.", "dismissed")
    )
    assert done in decide(browser, invoice, what, reason="as agreed", back="attention")
    assert till.kinds(invoice) == [*kinds, kind]
    assert "Nothing needs your attention." in browser.page("/attention").source
    assert (
        '<q dir="auto">as agreed</q>'
        in browser.page(f"/invoices/{invoice['id']}").source
    )
    again = decide(browser, invoice, what)
    assert "is paid already" in again or "no longer needs your attention" in again
    assert till.kinds(invoice) == [*kinds, kind]


def test_the_red_card_says_in_money_by_how_much(till, browser):
    """As the list does; the whole amount of a payment that vanished is said already."""
    invoice = till.shop.invoice()
    till.confirm(invoice, invoice["amount_sats"] + 5_000)
    page = browser.page(f"/invoices/{invoice['id']}")
    assert words(page.texts["difference"]) == "$3.00 too much"
    assert words(page.texts["too-much"]) == "Too much $3.00 0.00005000 BTC"
    dust = dust_missing(till)
    page = browser.page(f"/invoices/{dust['id']}")
    assert words(page.texts["difference"]) == "$0.18 is missing"
    lost = vanished(till)
    assert "difference" not in browser.page(f"/invoices/{lost['id']}").texts


def test_an_open_invoice_is_canceled_and_only_on_purpose_when_money_has_come(
    till, browser
):
    plain = till.shop.invoice()
    part = till.shop.invoice()
    assert "Canceled. Its page" in decide(browser, plain, "cancel")
    assert "is no longer open" in decide(browser, plain, "cancel")
    till.pay(part, 1_000)
    till.look_for(part)
    assert "money is on its way" in decide(browser, part, "cancel")
    assert till.look(part)["status"] == "open"
    assert "Canceled. Its page" in decide(browser, part, "cancel", force="yes")
    assert [till.look(one)["status"] for one in (plain, part)] == ["canceled"] * 2


def test_nothing_is_accepted_where_nothing_came(till, browser):
    invoice = till.shop.invoice()
    assert not has(browser, invoice, "accept")
    assert "no confirmed payment" in decide(browser, invoice, "accept")
    assert "Set aside." in decide(
        browser, late(till), "set-aside"
    )  # for a reason of our own


@pytest.mark.parametrize("decision", ["accept", "set-aside"])
@pytest.mark.parametrize(
    ("reason", "said"),
    [
        pytest.param("c" * 301, "more than 300 characters", id="too long"),
        pytest.param("a\u202eb", "U+202E", id="with a mark of direction"),
    ],
)
def test_a_reason_that_cannot_be_taken_is_refused_and_never_cut(
    till, browser, decision, reason, said
):
    invoice = late(till)
    kinds = till.kinds(invoice)
    assert said in decide(browser, invoice, decision, reason=reason)
    assert said in decide(browser, invoice, decision, reason=reason, back="attention")
    assert till.kinds(invoice) == kinds


def test_the_longest_reason_is_kept_whole(till, browser):
    invoice = late(till)
    decide(browser, invoice, "accept", reason=f" {'c' * MAX_REASON_CHARACTERS} ")
    (row,) = till.shop.sql(
        f"SELECT settled_reason FROM invoice WHERE id = '{invoice['id']}'"  # noqa: S608
    ).fetchall()
    assert row[0] == "c" * MAX_REASON_CHARACTERS


def test_every_kind_of_event_and_every_reason_has_its_words():
    """By what the templates name: a kind that is new would be shown by its name alone."""
    history, words = (
        Path(PROJECT / WORDS.format(name)).read_text() for name in ("history", "words")
    )
    assert [kind for kind in Kind if f'kind == "{kind}"' not in history] == []
    assert [reason for reason in REASONS if words.count(f'"{reason}":') != 2] == []


def test_the_page_lets_accept_what_the_command_advises_to_settle():
    settled = {reason for reason, text in ADVICE.items() if "invoice settle" in text}
    assert settled == set(REASONS) - set(ONLY_SET_ASIDE)
    assert set(invoice_page.OWES_NOTHING) <= set(ONLY_SET_ASIDE)


def test_much_dust_makes_no_endless_page(browser, monkeypatch):
    monkeypatch.setattr(invoice_page, "MOST_SHOWN", 3)
    invoice = browser.shop.invoice(2_000)
    txids = [pay(browser.shop, invoice, 1_000, confirmed=False) for _ in range(5)]
    source = browser.page(f"/invoices/{invoice['id']}").source
    assert sum(txid in source for txid in txids) == 3
    assert "Only the first 3" in source and "Only the last 3" in source
