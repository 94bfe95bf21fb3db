"""The pages by keyboard alone: in order, visibly, and with everything in reach."""

import pytest

from btcpay.merchants import branding
from btcpay.values.colours import contrast
from tests.support.builders import finish
from tests.support.hosted import show

PICKER = ["languages"]  # closed; its links are stops when it is open
BUTTONS = ["open-wallet", "copy-amount", "unfold"]
FOLDED = ["copy-address", "copy-link", "unit"]
UNFOLD = "document.getElementById('fold').open = true"
# The focused element's outline: its width, style and colour, and whether it stands in the window.
OUTLINE = """(() => {
    const it = document.activeElement, box = it.getBoundingClientRect();
    const style = getComputedStyle(it);
    return [parseFloat(style.outlineWidth), style.outlineStyle, style.outlineColor,
        box.top >= 0 && box.bottom <= innerHeight];
})()"""


def walk(tab):
    """Where each press of Tab leads, until it leaves the page or is back at the start."""
    first = None
    while True:
        tab.press("Tab")
        place = tab.focus()
        if place in ("BODY", first):
            return
        first = first or place
        yield place


def rgb(text):
    """`rgb(1, 2, 3)` as `#010203`."""
    return "#" + "".join(f"{int(part):02x}" for part in text[4:-1].split(","))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_tab_leads_through_the_page_in_order_and_shows_where_it_is(
    open_tab, counter, theme
):
    tab = show(open_tab, counter, counter.invoice(), theme=theme)
    background = {"light": branding.LIGHT_PAGE, "dark": branding.DARK_PAGE}[theme]
    places = []
    for place in walk(tab):
        width, style, colour, inside = tab.ask(OUTLINE)
        assert width >= 2 and style == "solid" and inside, place
        assert contrast(rgb(colour), background) >= branding.SHAPE_CONTRAST, place
        places.append(place)
    assert places == BUTTONS + PICKER
    tab = show(open_tab, counter, counter.invoice(), theme=theme)
    tab.ask(UNFOLD)
    assert list(walk(tab)) == BUTTONS + FOLDED + PICKER
    # nothing else to stop at
    finish(counter.shop, invoice := counter.invoice(), "canceled")
    assert list(walk(show(open_tab, counter, invoice, theme=theme))) == [
        "unit",
        *PICKER,
    ]


@pytest.mark.parametrize(
    ("key", "host", "permissions"),
    [
        ("Enter", "127.0.0.1", ["clipboardSanitizedWrite"]),
        ("Space", "127.0.0.1", []),
        ("Enter", "shop.test", []),
        ("Space", "shop.test", []),
    ],
    ids=["allowed", "refused", "over http", "over http, by space"],
)
def test_amount_address_and_link_are_copied_by_key(
    open_tab, counter, key, host, permissions
):
    """Also where a script may not use the clipboard, and has none: over http from elsewhere."""
    invoice = counter.invoice(description="Tea & cake")
    root = counter.root.replace("127.0.0.1", host)
    wallet = open_tab("data:")
    tab = open_tab(root)
    tab.grant(*permissions)
    wallet.go("data:text/html,<!doctype html><textarea name=to autofocus></textarea>")
    tab.go(f"{root}/pay/{invoice['id']}")
    assert tab.ask("isSecureContext") is (host == "127.0.0.1")
    expected = {
        "copy-amount": tab.text("amount-btc"),
        "copy-address": invoice["deposit_address"],
        "copy-link": tab.ask(
            "document.getElementById('open-wallet').getAttribute('href')"
        ),
    }
    assert expected["copy-link"].endswith("&message=Tea%20%26%20cake")
    tab.ask(UNFOLD)
    for place in walk(tab):
        if place in expected:
            label = tab.ask(
                f"document.getElementById('{place}').ariaLabel"
            ) or tab.text(place)
            tab.press(key)
            tab.until(f"document.getElementById('{place}').textContent === 'Copied'")
            assert tab.text("announce") == f"{label}: Copied"
            assert tab.focus() == place
            assert wallet.paste() == expected.pop(place)
    assert expected == {}


def test_a_link_is_paid_by_keyboard(open_tab, counter):
    """What becomes of a wrong amount is in test_browser_trips.py."""
    link = counter.shop.link()
    assert list(walk(show(open_tab, counter, link))) == ["amount", "submit", *PICKER]
    tab = show(open_tab, counter, link)
    tab.press("Tab")
    tab.type("5,01")
    tab.press("Tab", "Space")
    tab.until("document.getElementById('qr')")
    assert tab.text("amount") == "$5.01"


def test_a_change_leaves_the_keyboard_where_it_was_or_at_the_heading(open_tab, counter):
    invoice = counter.invoice()
    tab = show(open_tab, counter, invoice)
    tab.press(*["Tab"] * len(BUTTONS), "Enter", "Tab")
    counter.pay(invoice, 1_000)
    tab.pass_time(3)
    assert (tab.text("amount-total"), tab.focus()) == (
        "of $25.00 in total",
        "copy-address",
    )
    counter.pay(invoice, invoice["amount_sats"] - 1_000)
    tab.pass_time(3)
    assert (tab.text("state"), tab.focus()) == ("Payment seen", "state")
