"""The sandbox's page in a browser: it fits a phone, and tells what a button did."""

import pytest
from browser import DESK, PHONE, SMALL
from builders import Clock
from fake_esplora import serving_sandbox

TAPROOT = "bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6"  # the longest kind
SIDEWAYS = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"


@pytest.fixture
def root(tmp_path):
    with serving_sandbox(tmp_path, Clock()) as (_, root):
        yield root


@pytest.mark.parametrize("size", [SMALL, PHONE, DESK])
def test_it_cannot_be_moved_sideways_and_says_what_a_button_did(root, open_tab, size):
    tab = open_tab(root, size=size)
    tab.go(root)
    tab.until("document.readyState === 'complete'")
    for name, text in (("address", TAPROOT), ("amount", "0.00041667")):
        tab.click(f"input[name={name}]")
        tab.type(text)
    tab.click("button")
    tab.until("document.querySelector('[role=status]')")
    said = tab.ask("document.querySelector('[role=status]').textContent")
    assert said == f"Paid 41667 satoshis to {TAPROOT}; now mine a block."
    assert tab.ask(f"[innerWidth, {SIDEWAYS}]") == [size[0], 0]
