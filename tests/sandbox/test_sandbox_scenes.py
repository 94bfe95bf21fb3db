"""The workbench beside a shop: its scenes, its buttons by invoice, a newcomer's first minute."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bitcoin_node
import pytest
import requests
from browser import DESK, PHONE, SMALL, lack
from builders import until
from playground import Playground, children_of, start_playground

from btcpay.sandbox.scenes.stories import SCENES

JSON = {"Accept": "application/json"}
SIDEWAYS = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
AXE = """axe.run(document, {resultTypes: ['violations'], iframes: false}).then(({violations}) =>
    violations.map(({id, nodes}) => `${id}: ${nodes.map((node) => node.html).join(' ')}`))"""
NEWCOMER_S = 90  # from the clone's end to an invoice that is paid; pip's downloads apart


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    started = start_playground(tmp_path_factory.mktemp("workbench"))
    yield started
    assert started.stop() == 0


def scene(playground: Playground) -> dict[str, Any]:
    return requests.get(f"{playground.chain}/sandbox/state", timeout=10).json()["scene"]


def page(playground: Playground) -> str:
    return requests.get(playground.chain, timeout=10).text


def test_a_newcomer_sees_an_invoice_paid_by_one_press(playground, open_tab):
    """As README says: open the page that `make run` names, press the first scene."""
    if reason := bitcoin_node.why_not_installed():
        lack(reason)
    axe = (bitcoin_node.FOLDER / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
    tab = open_tab(playground.chain, size=DESK)
    tab.neighbours.append(playground.service)  # in the frame
    tab.go(playground.chain)
    tab.until("document.getElementById('customer').dataset.page")
    tab.click("#scene-paid-in-time")
    tab.until("document.querySelector('#story .now')")
    until(lambda: scene(playground)["state"] == "over", "the scene's end")
    assert time.monotonic() - playground.began_s < NEWCOMER_S
    tab.until("document.querySelector('#story .end')")
    tab.until("document.querySelector('.rows .state').textContent === 'paid'")
    tab.until("document.getElementById('events').textContent.includes('invoice.paid')")
    shown = scene(playground)["invoice"]
    framed = [url for url in tab.requests if url == shown["pay_url"]]
    assert framed and tab.text("announce") == scene(playground)["lines"][-1]
    tab.ask(f"{axe}; 0")
    for theme in ("light", "dark"):
        for size in (DESK, PHONE, SMALL):
            tab.emulate(size, theme)
            assert tab.ask(f"[innerWidth, {SIDEWAYS}]") == [size[0], 0]
        assert tab.ask(AXE) == []


def test_no_key_leaves_the_sandboxs_processes(playground):
    folder = Path(playground.environ["BTCPAY_DATABASE_URL"].removeprefix("sqlite:///")).parent
    files = [folder / "sandbox" / name for name in ("write_key", "workbench_key")]
    keys = {file.read_text().strip() for file in files}
    assert len(keys) == 2 and playground.key in keys
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    processes = [playground.process.pid, *children_of(playground.process.pid)]
    lines = [Path(f"/proc/{pid}/cmdline").read_text() for pid in processes]
    seen = [page(playground), *lines]
    assert [key for key in keys for text in seen if key in text] == []


ENDS = {
    "paid-in-time": ("paid", 5),
    "part-and-rest": ("paid", 5),
    "too-late": ("expired", 5),
    "replaced": ("paid", 6),
    "reorganised": ("paid", 6),
    "explorer-lies": ("paid", 7),
}


@pytest.mark.parametrize(("name", "end"), ENDS.items(), ids=ENDS)
def test_each_scene_plays_to_its_end(playground, name, end):
    playground.press("explorer", state="down")  # a scene begins in a world that is well
    playground.press("scene", scene=name, quick=1)
    until(lambda: scene(playground)["state"] != "playing", f"the end of {name}", 60)
    played = scene(playground)
    assert (played["state"], played["problem"]) == ("over", None), played["lines"]
    status, lines = end
    invoice = playground.get(f"/invoices/{played['invoice']['id']}")
    assert (invoice["status"], len(played["lines"])) == (status, lines)
    assert set(ENDS) == set(SCENES)


def test_buttons_pay_what_an_invoice_lacks_and_play_with_what_waits(playground):
    invoice = playground.press("invoice", amount_usd="1,200", description="A <b>wedding</b>")
    half_sats = invoice["amount_sats"] // 2
    first = playground.press("pay-short", invoice=invoice["id"])
    assert (first["address"], first["amount_sats"]) == (invoice["deposit_address"], half_sats)
    shown = page(playground)
    assert "A &lt;b&gt;wedding&lt;/b&gt;" in shown and f": {half_sats:,} in the mempool, " in shown
    replaced = playground.press("replace", invoice=invoice["id"])
    assert replaced["replaced"] == first["txid"]
    playground.press("replace", invoice=invoice["id"], away=1)
    assert playground.press("pay", invoice=invoice["id"])["amount_sats"] == invoice["amount_sats"]
    playground.press("mine")
    assert playground.wait_for_status(invoice, "paid")["amount_usd_quote"] == 1200
    again = playground.press("pay-too-much", invoice=invoice["id"])
    assert again["amount_sats"] == invoice["amount_sats"] + invoice["amount_sats"] // 10


@pytest.mark.parametrize(
    ("button", "fields", "said"),
    [
        ("pay", {"invoice": "inv_unknown"}, "Invoice: the shop has no inv_unknown"),
        ("pay", {"invoice": "../balance"}, "Invoice: give an id"),
        ("invoice", {"amount_usd": "2000000"}, "Dollars: give 0.01 to 1,000,000"),
        ("invoice", {"amount_usd": "1", "minutes": "soon"}, "Minutes: give"),
        ("invoice", {"amount_usd": "1", "minutes": "99999999"}, "The shop says: "),
        ("scene", {"scene": "hamlet"}, "Scene: give one of paid-in-time, "),
        ("explorer", {"state": "mumbles"}, "Up or down: give up, down or lies"),
    ],
)
def test_what_cannot_be_done_is_said(playground, button, fields, said):
    url = f"{playground.chain}/sandbox/{button}"
    answer = requests.post(url, data=fields, headers=JSON, timeout=10)
    assert answer.status_code == 400 and answer.json()["error"].startswith(said)


def test_another_scene_ends_the_one_that_plays_and_so_does_the_button(playground):
    playground.press("scene", scene="too-late")
    until(lambda: scene(playground)["lines"], "its first line")
    playground.press("scene", scene="paid-in-time")
    assert (scene(playground)["name"], scene(playground)["state"]) == ("paid-in-time", "playing")
    playground.press("stop")
    assert scene(playground)["state"] == "stopped"
    assert "Stopped." in page(playground)
