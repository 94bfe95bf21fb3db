"""The page of a chain alone, in a browser: it tells what a button did, and what went wrong."""

import pytest
from browser import SMALL
from builders import Clock
from fake_esplora import serving_sandbox

ADDRESS = "input[name=address]"
TAPROOT = "bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6"  # the longest kind
SIDEWAYS = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"


@pytest.mark.parametrize("script", [True, False], ids=["in place", "without JavaScript"])
def test_it_says_what_went_wrong_and_keeps_what_was_typed_and_says_what_was_done(
    tmp_path, open_tab, script
):
    with serving_sandbox(tmp_path, Clock()) as (_, root):
        tab = open_tab(root, size=SMALL, script=script)
        tab.go(root)
        tab.until("document.readyState === 'complete'")
        tab.click(ADDRESS)
        tab.type(TAPROOT)
        tab.click("[action='/sandbox/pay'] button")
        tab.until("document.querySelector('#notice [role=alert]')")
        assert "Amount" in tab.text("notice")
        assert tab.ask(f"document.querySelector('{ADDRESS}').value") == TAPROOT
        # The browser notes each answer to a script that is an error.
        assert ["400" in refusal for refusal in tab.complaints] == [True] * script
        tab.complaints.clear()
        tab.click("input[name=amount]")
        tab.type("0.00041667")
        tab.click("[action='/sandbox/pay'] button")
        said = f"Paid 41,667 sat to {TAPROOT}. It waits: mine a block."
        tab.until(f"document.querySelector('[role=status]')?.textContent === '{said}'")
        tab.click("#mine")
        mined = "Mined. The tip is block 201."
        tab.until(f"document.querySelector('[role=status]')?.textContent === '{mined}'")
        assert tab.ask(f"[innerWidth, {SIDEWAYS}]") == [SMALL[0], 0]
