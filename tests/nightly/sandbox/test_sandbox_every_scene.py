"""Each scene to its end, and a newcomer's first minute in a browser."""

import time

import pytest

from btcpay.sandbox.scenes.stories import scenes
from tests.support.axe import axe_script, look
from tests.support.browser import DESK, PHONE, SMALL
from tests.support.builders import until
from tests.support.playground import scene_of

# from the clone's end to an invoice that is paid; pip's downloads apart
NEWCOMER_S = 90


def test_a_newcomer_sees_an_invoice_paid_by_one_press(playground, open_tab):
    """As README says: open the page that `make run` names, press the first scene."""
    axe = axe_script()
    tab = open_tab(playground.chain, size=DESK)
    tab.neighbours.append(playground.service)  # in the frame
    tab.go(playground.chain)
    tab.until("document.getElementById('customer').dataset.page")
    tab.click("#scene-paid-in-time")
    tab.until("document.querySelector('#story .now')")
    until(lambda: scene_of(playground)["state"] == "over", "the scene's end")
    assert time.monotonic() - playground.began_s < NEWCOMER_S
    tab.until("document.querySelector('#story .end')")
    tab.until("document.querySelector('.rows .state').textContent === 'paid'")
    tab.until("document.getElementById('events').textContent.includes('invoice.paid')")
    shown = scene_of(playground)["invoice"]
    framed = [url for url in tab.requests if url == shown["pay_url"]]
    assert framed and tab.text("announce") == scene_of(playground)["lines"][-1]
    assert look(tab, axe, (DESK, PHONE, SMALL)) == []


ENDS = {
    "paid-in-time": ("paid", 5),
    "part-and-rest": ("paid", 5),
    "too-much": ("paid", 5),
    "too-late": ("expired", 5),
    "replaced": ("paid", 6),
    "reorganised": ("paid", 6),
    "explorer-lies": ("paid", 7),
}


@pytest.mark.parametrize(("name", "end"), ENDS.items(), ids=ENDS)
def test_each_scene_plays_to_its_end(playground, name, end):
    playground.press("explorer", state="down")  # a scene begins in a world that is well
    playground.press("scene", scene=name, quick=1)
    until(lambda: scene_of(playground)["state"] != "playing", f"the end of {name}", 60)
    played = scene_of(playground)
    assert (played["state"], played["problem"]) == ("over", None), played["lines"]
    status, lines = end
    invoice = playground.get(f"/invoices/{played['invoice']['id']}")
    assert (invoice["status"], len(played["lines"])) == (status, lines)
    assert set(ENDS) == set(scenes())
