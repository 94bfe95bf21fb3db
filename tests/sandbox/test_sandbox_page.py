"""The page of a chain alone, in a browser: it fits a phone, and tells what a button did."""

import pytest
from browser import PHONE, SMALL
from builders import Clock
from fake_esplora import serving_sandbox

TAPROOT = "bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6"  # the longest kind
SIDEWAYS = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
TOLD = "document.querySelector('[role=status]')"


@pytest.fixture
def root(tmp_path):
    with serving_sandbox(tmp_path, Clock()) as (_, root):
        yield root


@pytest.mark.parametrize(("size", "script"), [(SMALL, True), (PHONE, False)])
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


def test_what_went_wrong_is_said_and_what_was_typed_stays(root, open_tab):
    tab = open_tab(root, size=PHONE)
    tab.go(root)
    tab.until("document.readyState === 'complete'")
    tab.click("input[name=address]")
    tab.type("nobody")
    tab.click("[action='/sandbox/pay'] button")
    tab.until("document.querySelector('#notice [role=alert]')")
    assert "Amount" in tab.text("notice")
    assert tab.ask("document.querySelector('input[name=address]').value") == "nobody"
    (refusal,) = tab.complaints  # the browser notes each answer that is an error
    assert "400" in refusal
    tab.complaints.clear()
