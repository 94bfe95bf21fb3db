"""The pages of refunds in a real browser: every state, size and theme, with and without scripts."""

import pytest

from btcpay.parts.refunds import actions, steps
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
    for path in ("/refunds", f"/invoices/{refunds['invoice']['id']}", "/attention"):
        assert tab.go(f"{counter.root}/merchant{path}?lang={language}") == 200
        found += [(path, fault) for fault in look(tab, axe, (DESK, SMALL))]
    assert found == []


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
