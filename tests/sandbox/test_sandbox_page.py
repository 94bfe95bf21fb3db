"""The page of a chain alone, in a browser: it tells what a button did, and what went wrong."""

import pytest
from browser import SMALL
from builders import Clock, until
from fake_esplora import serving_sandbox

ADDRESS = "input[name=address]"
TAPROOT = "bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6"  # the longest kind
SIDEWAYS = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
PROBLEM = "document.querySelector('#notice [role=alert]')"


@pytest.fixture
def root(tmp_path):
    """Named before `open_tab`, whose page asks it to the end."""
    with serving_sandbox(tmp_path, Clock()) as (_, root):
        yield root


@pytest.mark.parametrize("script", [True, False], ids=["in place", "without JavaScript"])
def test_it_says_what_went_wrong_and_keeps_what_was_typed_and_says_what_was_done(
    root, open_tab, script
):
    tab = open_tab(root, size=SMALL, script=script)
    tab.go(root)
    tab.until("document.readyState === 'complete'")
    tab.click(ADDRESS)
    tab.type(TAPROOT)
    tab.click("[action='/sandbox/pay'] button")
    tab.until(PROBLEM)
    if script:  # the page renews itself each second, and the problem stays
        before = len(tab.requests)
        until(lambda: tab.ask("0") or len(tab.requests) > before + 2, "further looks")
    assert "Amount" in tab.ask(f"{PROBLEM}.textContent")
    assert tab.ask(f"document.querySelector('{ADDRESS}').value") == TAPROOT
    tab.click("input[name=amount]")
    tab.type("0.00041667")
    paid = f"Paid 41,667 sat to {TAPROOT}. It waits: mine a block."
    for button, said in (
        ("[action='/sandbox/pay'] button", paid),
        ("#mine", "Mined. The tip is block 201."),
    ):
        tab.click(button)
        tab.until(f"document.querySelector('[role=status]')?.textContent === '{said}'")
    assert tab.ask(f"[innerWidth, {SIDEWAYS}]") == [SMALL[0], 0]
    assert all("400" in refusal for refusal in tab.complaints)  # the browser notes errors
    tab.complaints.clear()
