"""The page of a chain alone, in a browser: it fits a phone, and tells what a button did."""

import pytest
from browser import DESK, PHONE, SMALL
from builders import Clock
from fake_esplora import serving_sandbox

TAPROOT = "bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6"  # the longest kind
SIDEWAYS = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
TOLD = "document.querySelector('[role=status]')"


@pytest.fixture
def root(tmp_path):
    with serving_sandbox(tmp_path, Clock()) as (_, root):
        yield root


@pytest.mark.parametrize("script", [True, False], ids=["in place", "without JavaScript"])
@pytest.mark.parametrize("size", [SMALL, PHONE, DESK])
def test_it_cannot_be_moved_sideways_and_says_what_a_button_did(root, open_tab, size, script):
    tab = open_tab(root, size=size, script=script)
    tab.go(root)
    tab.until("document.readyState === 'complete'")
    for name, text in (("address", TAPROOT), ("amount", "0.00041667")):
        tab.click(f"input[name={name}]")
        tab.type(text)
    tab.click("[action='/sandbox/pay'] button")
    tab.until(TOLD)
    said = f"Paid 41,667 sat to {TAPROOT}. It waits: mine a block."
    assert tab.ask(f"{TOLD}.textContent") == said
    tab.click("#mine")
    tab.until(f"{TOLD}.textContent === 'Mined. The tip is block 201.'")
    assert tab.ask(f"[innerWidth, {SIDEWAYS}]") == [size[0], 0]
