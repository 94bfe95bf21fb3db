"""The workbench beside a shop: its scenes, and its buttons by invoice."""

import json
from pathlib import Path

import requests

from tests.support.builders import until
from tests.support.playground import children_of, scene_of
from tests.support.processes import command_of

JSON = {"Accept": "application/json"}


def page(playground):
    return requests.get(playground.chain, timeout=60).text


def test_no_key_leaves_the_sandboxs_processes(playground):
    folder = Path(
        playground.environ["BLOCKTILL_DATABASE_URL"].removeprefix("sqlite:///")
    ).parent
    files = [
        folder / "sandbox" / name
        for name in ("write_key", "workbench_key", "webhook_secret")
    ]
    keys = {file.read_text().strip() for file in files}
    assert len(keys) == 3 and playground.key in keys
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    processes = [playground.process.pid, *children_of(playground.process.pid)]
    lines = [" ".join(command_of(pid)) for pid in processes]
    seen = [page(playground), *lines]
    assert [key for key in keys for text in seen if key in text] == []


def test_a_scene_plays_to_its_end_in_a_world_that_is_well(playground):
    playground.press("explorer", state="down")
    playground.press("scene", scene="paid-in-time", quick=1)
    until(lambda: scene_of(playground)["state"] != "playing", "its end")
    played = scene_of(playground)
    assert (played["state"], played["problem"], len(played["lines"])) == (
        "over",
        None,
        5,
    )
    invoice = playground.get(f"/invoices/{played['invoice']['id']}")
    assert invoice["status"] == "paid"
    event = f"<b>invoice.paid</b> {invoice['amount_sats']:,}"
    until(lambda: event in page(playground), "its event")


def test_too_much_that_is_sent_back_leaves_nothing_that_needs_attention(playground):
    playground.press("scene", scene="too-much", quick=1)
    until(lambda: scene_of(playground)["state"] != "playing", "its end")
    played = scene_of(playground)
    assert (played["state"], played["problem"], len(played["lines"])) == (
        "over",
        None,
        5,
    )
    invoice = playground.get(f"/invoices/{played['invoice']['id']}")
    assert invoice["status"] == "paid"
    for _ in range(2):  # nor when more blocks give the miner's reward
        assert wanting(playground) == []
        playground.press("mine")


def wanting(playground):
    """The invoices that need attention, by the shop's own command."""
    answer = playground.blocktill("invoice", "list", "--attention", "--json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_buttons_pay_what_an_invoice_lacks_and_play_with_what_waits(playground):
    invoice = playground.press(
        "invoice", amount_usd="1,200", description="A <b>wedding</b>"
    )
    half_sats = invoice["amount_sats"] // 2
    first = playground.press("pay-short", invoice=invoice["id"])
    assert (first["address"], first["amount_sats"]) == (
        invoice["deposit_address"],
        half_sats,
    )
    shown = page(playground)
    assert (
        "A &lt;b&gt;wedding&lt;/b&gt;" in shown
        and f": {half_sats:,} in the mempool, " in shown
    )
    replaced = playground.press("replace", invoice=invoice["id"])
    assert replaced["replaced"] == first["txid"]
    playground.press("replace", invoice=invoice["id"], away=1)
    assert (
        playground.press("pay", invoice=invoice["id"])["amount_sats"]
        == invoice["amount_sats"]
    )
    playground.press("mine")
    assert playground.wait_for_status(invoice, "paid")["amount_usd_quote"] == 1200
    again = playground.press("pay-too-much", invoice=invoice["id"])
    assert again["amount_sats"] == invoice["amount_sats"] + invoice["amount_sats"] // 10


def test_what_cannot_be_done_is_said(playground):
    for button, fields, said in (
        ("pay", {"invoice": "inv_unknown"}, "Invoice: the shop has no inv_unknown"),
        ("pay", {"invoice": "../balance"}, "Invoice: give an id"),
        ("invoice", {"amount_usd": "2000000"}, "Amount usd: give 0.01 to 1,000,000"),
        ("invoice", {"amount_usd": "1", "minutes": "soon"}, "Minutes: give"),
        ("invoice", {"amount_usd": "1", "minutes": "99999999"}, "The shop says: "),
        ("scene", {"scene": "hamlet"}, "Scene: give one of paid-in-time, "),
        ("explorer", {"state": "mumbles"}, "State: give up, down or lies"),
    ):
        url = f"{playground.chain}/sandbox/{button}"
        answer = requests.post(url, data=fields, headers=JSON, timeout=60)
        assert answer.status_code == 400 and answer.json()["error"].startswith(said)


def test_the_button_ends_the_scene_that_plays(playground):
    playground.press("scene", scene="paid-in-time")
    assert scene_of(playground)["state"] == "playing"
    playground.press("stop")
    assert scene_of(playground)["state"] == "stopped"
    assert "Stopped." in page(playground)
