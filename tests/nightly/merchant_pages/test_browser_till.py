"""The till in a real browser, as a waiter uses it."""

import re

from merchant_browser import log_in

from btcpay.sandbox.payer.wallet import replace
from btcpay.values.money import btc_text


def show_code(tab, counter, amount):
    """Types the amount and presses Enter; the invoice that is shown."""
    tab.go(f"{counter.root}/merchant/till")
    tab.until("document.activeElement.id === 'amount'")
    tab.type(amount)
    tab.press("Enter")
    tab.until("document.getElementById('qr')")
    id = tab.ask("location.pathname.split('/').pop()")
    return counter.shop.get(f"/invoices/{id}").json


def assert_is_quiet(tab):
    """A paid invoice's page asks once a minute at most, a till without an invoice never."""
    polls = tab.polls
    tab.pass_time(40)
    assert tab.polls == polls > 0


def test_two_tills_turn_green_by_themselves_each_for_its_own_payment(open_tab, counter):
    tab, other = log_in(open_tab(counter.root), counter), log_in(open_tab(counter.root), counter)
    invoice, theirs = show_code(tab, counter, "25"), show_code(other, counter, "30")
    address = invoice["deposit_address"]
    assert tab.qr().text == f"bitcoin:{address}?amount={btc_text(invoice['amount_sats'])}"
    tab.ask("window.stayed = true")
    colour = "getComputedStyle(document.getElementById('main')).backgroundColor"
    colours = [tab.ask(colour)]
    counter.pay(invoice)
    for state, words in (("seen", "Payment seen. The whole amount"), ("paid", "Paid. The payment")):
        tab.until_state(state)
        colours.append(tab.ask(colour))
        assert tab.text("announce").startswith(words) and not tab.is_shown("qr")
        if state == "seen":
            counter.mine()
    assert len(set(colours)) == 3 and tab.ask("window.stayed")  # nothing was loaded again
    assert_is_quiet(tab)
    assert other.ask("document.getElementById('main').dataset.state") == "waiting"
    counter.pay(theirs)
    other.until_state("seen")
    other.click("#next")
    other.until("document.getElementById('sales')")
    other.until("document.activeElement.id === 'amount'")  # which a page does once it is painted
    assert "On its way" in other.text("sales")
    assert_is_quiet(other)


def test_a_till_turns_red_by_itself_when_what_was_seen_is_taken_back(open_tab, counter):
    tab, till = log_in(open_tab(counter.root), counter), counter.till
    invoice = show_code(tab, counter, "25")
    txid = counter.pay(invoice)
    tab.until_state("seen")
    replace(till.sandbox.wallet, till.now, txid, away=True)
    till.look_for(invoice)
    tab.until_state("waiting")
    assert tab.text("announce").startswith("The payment was taken back.") and tab.is_shown("qr")
    red, green, _ = re.findall(
        r"[0-9]+", tab.ask("getComputedStyle(document.getElementById('main')).backgroundColor")
    )[:3]
    assert int(red) > int(green)


def test_the_keys_type_and_the_next_sale_tells_the_cashier_alone_of_the_one_before(
    open_tab, counter
):
    till, tab = counter.till, log_in(open_tab(counter.root), counter)
    invoice = show_code(tab, counter, "41")
    txid = counter.pay(invoice)
    tab.until_state("seen")
    tab.click("#next")
    tab.until("document.getElementById('keypad')")
    assert "On its way" in tab.text("sales")
    for place in (7, 11, 12, 10, 5):  # 7, 0, delete, the point, 5
        tab.click(f"#keypad > :nth-child({place})")
    assert tab.ask("document.getElementById('amount').value") == "7.5"
    tab.click("#show")
    tab.until("document.getElementById('qr')")
    tab.ask("window.stayed = true")
    replace(till.sandbox.wallet, till.now, txid, away=True)
    till.look_for(invoice)
    tab.pass_time(6)
    tab.until("document.getElementById('alarms').textContent.includes('For the cashier')")
    assert tab.ask("window.stayed") and tab.is_shown("qr")
    assert not tab.ask("document.querySelector('.alarm') || document.querySelector('#alarms a')")
