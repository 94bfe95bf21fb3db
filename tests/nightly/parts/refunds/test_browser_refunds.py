"""The pages of refunds in a real browser: every state, size and theme, with and without scripts."""

import pytest

from btcpay.parts.refunds import actions, steps
from btcpay.values.money import full_btc_text
from tests.support.axe import axe_script, look
from tests.support.browser import DESK, PHONE, SMALL
from tests.support.merchant_browser import log_in
from tests.support.shop_refunds import address, found, made, send


@pytest.fixture(scope="module")
def refunds(counter):
    """One in each state, by its status, of a paid invoice; and a second invoice's, to be sent."""
    invoice = counter.shop.invoice(
        description="A coat", customer_email="ann@example.com"
    )
    counter.pay(invoice)
    counter.mine()
    db = counter.shop.service.db
    clock = counter.clock
    found = {
        name: made(counter.till, invoice, 600) for name in ("requested", "canceled")
    }
    actions.drop(db, found["canceled"].id, steps.CANCELED, clock())
    found["sent"] = made(counter.till, invoice, 5_000, address(1))
    send(counter.till, found["sent"])
    counter.mine()
    found["ready"] = made(counter.till, invoice, 7_000, address(2, version=1))
    found["invoice"] = invoice
    found["overpaid"] = counter.shop.invoice(customer_email="ann@example.com")
    counter.pay(found["overpaid"], found["overpaid"]["amount_sats"] + 8_333)
    counter.mine()
    return found


@pytest.mark.parametrize("language", ["en", "ar"])
def test_every_state_fits_in_both_themes_and_axe_finds_nothing(
    open_tab, counter, refunds, language
):
    tab = open_tab(counter.root)
    axe = axe_script()
    found = []
    for state in ("requested", "ready", "sent", "canceled"):
        url = f"{counter.root}/refund/{refunds[state].id}?lang={language}"
        assert tab.go(url) == 200
        found += [(state, fault) for fault in look(tab, axe, (DESK, SMALL))]
    log_in(tab, counter)
    invoices = [refunds[name]["id"] for name in ("invoice", "overpaid")]
    for path in ("/refunds", *(f"/invoices/{id}" for id in invoices), "/attention"):
        assert tab.go(f"{counter.root}/merchant{path}?lang={language}") == 200
        found += [(path, fault) for fault in look(tab, axe, (DESK, SMALL))]
    assert found == []


def test_the_customer_reads_what_to_do_next_in_every_state(open_tab, counter, refunds):
    """Also the time, in their own zone and to the minute."""
    tab = open_tab(counter.root)
    for state in ("ready", "sent", "canceled"):
        tab.go(f"{counter.root}/refund/{refunds[state].id}")
        tab.until("document.documentElement.classList.contains('js')")
        assert tab.is_shown("words") and len(tab.text("words")) > 40, state
    tab.go(f"{counter.root}/refund/{refunds['sent'].id}")
    tab.until("document.documentElement.classList.contains('js')")
    time = tab.ask("document.querySelector('time').textContent")
    assert time.count(":") == 1


@pytest.mark.parametrize(
    ("script", "excess_sats"),
    [(True, 50_000), (False, 100_000)],
    ids=["with scripts", "without"],
)
def test_from_needs_attention_a_refund_is_made_with_two_taps(
    open_tab, counter, script, excess_sats
):
    """The one with the most at stake is unfolded."""
    invoice = counter.shop.invoice()
    counter.pay(invoice, invoice["amount_sats"] + excess_sats)
    counter.mine()
    tab = open_tab(counter.root, size=PHONE)
    log_in(tab, counter)
    tab.emulate(PHONE, script=script)
    tab.go(f"{counter.root}/merchant/attention")
    tab.click(f"#about-{invoice['id']} .button")
    tab.until("document.getElementById('refund-amount')")
    amount = f"{excess_sats * 6 // 10_000}.00"
    assert tab.ask("document.getElementById('refund-amount').value") == amount
    tab.click("#refund form .button")
    tab.until("location.pathname.endsWith('/refunds')")
    both = f"${amount} · {full_btc_text(excess_sats)} BTC"
    assert both in tab.ask("document.body.innerText")


def test_the_red_card_has_the_button_for_money_back_on_a_phones_first_screen(
    open_tab, counter, refunds
):
    tab = open_tab(counter.root, size=PHONE)
    log_in(tab, counter)
    tab.go(f"{counter.root}/merchant/invoices/{refunds['overpaid']['id']}")
    button = "document.querySelector('#attention #refund summary.button:not(.second)')"
    assert tab.ask(f"{button}.getBoundingClientRect().bottom") < 664


@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without"])
def test_an_address_is_pasted_compared_and_kept_on_a_phone(
    open_tab, counter, refunds, script
):
    refund = made(counter.till, refunds["invoice"], 700)
    tab = open_tab(counter.root, size=PHONE, script=script)
    assert tab.go(f"{counter.root}/refund/{refund.id}") == 200
    tab.click("#to")
    tab.type("bcrt1qnonsense")
    tab.click("#give button")
    tab.until("document.getElementById('problem')")
    tab.ask("document.getElementById('to').value = ''")
    tab.click("#to")
    tab.type(f"bitcoin:{address(3)}?amount=1")
    tab.click("#give button")
    tab.until("document.getElementById('confirm')")
    assert "".join((tab.text("address") or "").split()) == address(3)
    tab.click("#confirm button")
    tab.until("document.getElementById('words')")
    assert found(counter.till, refund).address == address(3)


@pytest.mark.parametrize("excess_sats", [0, 8_333], ids=["exactly paid", "overpaid"])
def test_a_refund_shows_on_an_invoices_page_that_stayed_open(
    open_tab, counter, excess_sats
):
    invoice = counter.shop.invoice()
    counter.pay(invoice, invoice["amount_sats"] + excess_sats)
    counter.mine()
    tab = open_tab(counter.root)
    tab.go(counter.page(invoice))
    tab.until_state("paid")
    send(counter.till, made(counter.till, invoice, 5_000, address(4)))
    tab.pass_time(61)
    assert "0.00005000 BTC" not in tab.ask("document.body.innerText")
    counter.mine()
    tab.pass_time(61)
    assert "0.00005000 BTC" in tab.ask("document.body.innerText")
