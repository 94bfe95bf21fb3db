"""Each scene to its end, and a newcomer's first minute in a browser."""

import threading
import time

import pytest

from btcpay.sandbox.scenes.stories import scenes
from btcpay.sandbox.shop import Shop
from tests.support.axe import axe_script, look
from tests.support.browser import DESK, PHONE, SMALL
from tests.support.builders import Clock, until
from tests.support.fake_esplora import serving_sandbox
from tests.support.playground import scene_of
from tests.support.ports import free_port

# from the clone's end to an invoice that is paid; pip's downloads apart
NEWCOMER_S = 90
LOOK_EVERY_S = 0.2  # a look at the whole state costs sandbox and test some milliseconds


def test_a_newcomer_sees_an_invoice_paid_by_one_press(playground, open_tab):
    """As README says: open the page that `make run` names, press the first scene."""
    axe = axe_script()
    tab = open_tab(playground.chain, size=DESK)
    tab.neighbours.append(playground.service)  # in the frame
    tab.go(playground.chain)
    tab.until("document.getElementById('customer').dataset.page")
    tab.click("#scene-paid-in-time")
    tab.until("document.querySelector('#story .now')")
    until(
        lambda: scene_of(playground)["state"] == "over",
        "the scene's end",
        every_s=LOOK_EVERY_S,
    )
    assert time.monotonic() - playground.began_s < NEWCOMER_S
    tab.until("document.querySelector('#story .end')")
    tab.until("document.querySelector('.rows .state').textContent === 'paid'")
    tab.until("document.getElementById('events').textContent.includes('invoice.paid')")
    shown = scene_of(playground)["invoice"]
    framed = [url for url in tab.requests if url == shown["pay_url"]]
    assert framed and tab.text("announce") == scene_of(playground)["lines"][-1]
    assert look(tab, axe, (DESK, PHONE, SMALL)) == []


@pytest.fixture
def workbench(tmp_path):
    shop = Shop(f"http://127.0.0.1:{free_port()}", "sk_test_x")  # it is away
    with serving_sandbox(tmp_path, Clock(), shop) as served:
        yield served


def test_each_line_of_a_scene_loads_its_refunds_page_again(workbench, open_tab):
    """That page does not renew itself, as an invoice's page does."""
    sandbox, root = workbench
    page = f"{root}/refund/ref_1"
    is_given = threading.Event()

    def story():
        sandbox.stage.show({"id": "inv_1", "pay_url": page})
        yield "The customer is asked for an address."
        sandbox.stage.until(is_given.is_set, "the address")
        yield "The address is given."

    tab = open_tab(root, size=DESK)
    tab.go(root)

    def loads():
        tab.ask("0")  # so that the browser's news are heard
        return tab.requests.count(page)

    sandbox.stage.start("one", "One", story(), quick=True)
    until(loads, "the page")
    tab.until("document.querySelectorAll('#story li').length === 1")
    first = loads()
    is_given.set()
    until(lambda: loads() > first, "the page once more")


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
    until(
        lambda: scene_of(playground)["state"] != "playing",
        f"the end of {name}",
        60,
        every_s=LOOK_EVERY_S,
    )
    played = scene_of(playground)
    assert (played["state"], played["problem"]) == ("over", None), played["lines"]
    status, lines = end
    invoice = playground.get(f"/invoices/{played['invoice']['id']}")
    assert (invoice["status"], len(played["lines"])) == (status, lines)
    assert set(ENDS) == set(scenes())
