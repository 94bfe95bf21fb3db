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
    assert not tab.is_shown("no-wallet") and not tab.is_shown("qr")
    unheard(tab)


SHOWN = "document.getElementById('qr')?.checkVisibility({ visibilityProperty: true })"


def awaiting_script(open_tab, counter):
    """A phone's page whose script was asked for and has no answer yet, as soon as it is seen."""
    tab = open_tab(counter.root)
    tab.call("Fetch.enable", patterns=[{"urlPattern": "*/assets/pages*.js"}])
    tab.call("Page.navigate", url=counter.page(counter.invoice(left_s=3000)))
    tab.until_seen(
        "document.getAnimations().length && document.timeline.currentTime > 0"
    )
    return tab


def test_while_the_script_hangs_the_code_is_shown_whatever_is_touched(
    open_tab, counter
):
    tab = awaiting_script(open_tab, counter)
    tab.click("#unfold")  # before the code is shown: it must not be put away unseen
    tab.until_seen(SHOWN)
    tab.click("#unfold")
    assert not tab.ask(SHOWN)
    tab.click("#unfold")
    assert tab.ask(SHOWN), "it waits for the script once, and not again"
    assert "js" not in tab.ask("document.documentElement.className")


def test_a_script_that_comes_late_takes_the_code_from_nobody(open_tab, counter):
    tab = awaiting_script(open_tab, counter)
    tab.until_seen(SHOWN)
    tab.call("Fetch.disable")  # which answers what was held
    tab.until("document.documentElement.className === 'js'")
    assert tab.ask(SHOWN)
    tab.click("#unfold")
    assert not tab.ask(SHOWN)


def test_the_code_is_shown_where_the_script_never_arrives(open_tab, counter):
    tab = open_tab(counter.root)
    tab.call("Network.setBlockedURLs", urls=["*/assets/pages*.js"])
    tab.go(counter.page(counter.invoice(left_s=3000)))
    tab.until(
        "document.getElementById('qr')?.checkVisibility({ visibilityProperty: true })"
    )
    tab.until(
        "document.getElementById('pay-by').checkVisibility({ visibilityProperty: true })"
    )
    assert "js" not in tab.ask("document.documentElement.className")
    tab.complaints[:] = [
        one for one in tab.complaints if "ERR_BLOCKED_BY_CLIENT" not in one
    ]
