"""A payment in a real browser; tests/nightly has every page in every state."""

from btcpay.values.money import btc_text
from tests.support.axe import axe_script, look
from tests.support.browser import DESK, PHONE
from tests.support.hosted import show


def test_a_page_fits_phone_and_desk_and_axe_finds_nothing(open_tab, counter):
    invoice = counter.invoice(description="Two bags of coffee", left_s=3000)
    tab = show(open_tab, counter, invoice)
    bottom = "document.getElementById('bitcoin').getBoundingClientRect().bottom"
    assert tab.ask(bottom) <= 664  # the height that a browser leaves
    assert tab.is_shown("qr") and not tab.is_shown("address")
    tab.click("#unfold")
    assert tab.is_shown("address")
    assert look(tab, axe_script(), (PHONE, DESK)) == []
    amount = btc_text(invoice["amount_sats"])
    assert tab.qr().text == f"bitcoin:{invoice['deposit_address']}?amount={amount}"


def test_a_payment_shows_by_itself_when_it_is_seen_and_when_it_is_confirmed(
    open_tab, counter
):
    invoice = counter.invoice(description="Two bags of coffee")
    tab = show(open_tab, counter, invoice)
    assert (
        tab.text("state") == "Waiting for your payment" and tab.text("announce") == ""
    )
    tab.ask("window.stayed = true")
    txid = counter.pay(invoice)
    tab.until_state("seen")
    assert tab.text("announce").startswith("Payment seen. It is complete")
    assert tab.text("confirmations") == "Confirmations: 0 of 1" and not tab.is_shown(
        "ways"
    )
    counter.mine()
    tab.until_state("paid")
    assert tab.text("announce") == "Paid. Thank you. This is your receipt."
    assert (
        tab.text("transaction") == txid
        and tab.text("description") == "Two bags of coffee"
    )
    assert tab.ask("document.title") == "Paid · $25.00 · shop"
    assert tab.ask("window.stayed")  # nothing was loaded again
