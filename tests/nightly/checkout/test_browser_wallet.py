"""A payer's phone: no wallet that opens, and a script that never comes."""

import pytest

from btcpay.values.money import btc_text
from tests.support.browser import DESK
from tests.support.hosted import show


def unheard(tab):
    """Chromium takes an address that nothing opens for another host that only leads on."""
    tab.requests[:] = [one for one in tab.requests if not one.startswith("bitcoin:")]
    tab.complaints[:] = [one for one in tab.complaints if "BounceTracking" not in one]


@pytest.mark.parametrize("size", [(390, 664), DESK], ids=["on a phone", "at a desk"])
def test_where_no_wallet_opens_the_code_and_what_can_be_copied_are_shown(
    open_tab, counter, size
):
    invoice = counter.invoice(left_s=3000)
    tab = show(open_tab, counter, invoice, size=size)
    assert not tab.is_shown("no-wallet")
    tab.click("#open-wallet")
    tab.until("document.getElementById('no-wallet').checkVisibility()")
    bottom = "document.getElementById('qr').getBoundingClientRect().bottom"
    assert tab.ask(bottom) <= size[1]  # the whole code, without a touch
    assert tab.is_shown("qr") and tab.text("announce").startswith("No wallet opened?")
    copies = "[...document.querySelectorAll('#no-wallet button')].map((it) => it.textContent)"
    assert tab.ask(copies) == ["Copy amount", "Copy address"]
    expected = [btc_text(invoice["amount_sats"]), invoice["deposit_address"]]
    assert tab.ask(copies.replace("textContent", "dataset.copy")) == expected
    unheard(tab)


def test_where_a_wallet_took_the_screen_nothing_is_said(open_tab, counter):
    tab = show(open_tab, counter, counter.invoice(left_s=3000))
    tab.click("#open-wallet")
    tab.ask("window.dispatchEvent(new Event('blur'))")
    tab.pass_time(3)
    assert not tab.is_shown("no-wallet")
    unheard(tab)


def test_all_is_in_reach_where_the_script_never_arrives(open_tab, counter):
    tab = open_tab(counter.root)
    tab.call("Network.setBlockedURLs", urls=["*/assets/pages*.js"])
    tab.go(counter.page(counter.invoice(left_s=3000)))
    assert tab.is_shown("qr")
    tab.click("#unfold")
    tab.until("document.getElementById('address').checkVisibility()")
    tab.until(
        "document.getElementById('pay-by').checkVisibility({ visibilityProperty: true })"
    )
    assert "js" not in tab.ask("document.documentElement.className")
    tab.complaints[:] = [
        one for one in tab.complaints if "ERR_BLOCKED_BY_CLIENT" not in one
    ]
