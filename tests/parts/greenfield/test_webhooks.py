"""A plug-in's webhooks: registered within its shop alone, anew at each save, and removed."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from btcpay.notify import receivers
from tests.support.plug_in import GreenfieldShop

pytestmark = pytest.mark.both_databases
WEBHOOKS = "/stores/STORE/webhooks"
URL = "https://shop.example/?wc-api=blocktillgf_default"
OPENCARTS = "https://shop.example/index.php?route=extension/blocktill/payment/blocktill|callback"


def test_what_a_plug_in_registers_it_reads_changes_and_removes(greenfield):
    events = {"everything": False, "specificEvents": ["InvoiceSettled", "Unknown"]}
    asked = {
        "enabled": True,
        "automaticRedelivery": True,
        "url": URL,
        "authorizedEvents": events,
    }
    made = greenfield.ask("POST", WEBHOOKS, asked).json
    secret = made.pop("secret")
    events["specificEvents"].remove("Unknown")
    assert len(secret) == 43 and made == asked | {
        "id": made["id"],
        "authorizedEvents": events,
    }
    path = f"{WEBHOOKS}/{made['id']}"
    assert greenfield.ask("GET", path).json == made
    again = greenfield.ask("POST", WEBHOOKS, {"url": URL, "secret": "own"}).json
    assert (again["id"], again["secret"]) == (made["id"], "own")
    assert again["authorizedEvents"] == {"everything": True, "specificEvents": []}
    moved = {"url": OPENCARTS, "enabled": False, "authorizedEvents": events}
    changed = greenfield.ask("PUT", path, moved).json
    assert changed == made | {"url": OPENCARTS, "enabled": False}
    assert greenfield.ask("GET", WEBHOOKS).json == [changed]
    sister = GreenfieldShop(greenfield.shop, url="https://sister.example")
    other = greenfield.ask("POST", WEBHOOKS, {"url": URL}).json
    sent = greenfield.ask("PUT", f"{WEBHOOKS}/{other['id']}", {"url": OPENCARTS})
    assert [one["url"] for one in greenfield.ask("GET", WEBHOOKS).json] == [OPENCARTS]
    assert greenfield.ask("GET", WEBHOOKS).json == [sent.json]  # the other one made way
    for who, gone in ((greenfield, path), (sister, f"{WEBHOOKS}/{other['id']}")):
        for method, body in (
            ("GET", None),
            ("PUT", {"url": who.url}),
            ("DELETE", None),
        ):
            assert who.ask(method, gone, body).status_code == 404
    assert greenfield.ask("DELETE", f"{WEBHOOKS}/{other['id']}").status_code == 200
    assert (
        greenfield.ask("GET", WEBHOOKS).json == sister.ask("GET", WEBHOOKS).json == []
    )


def test_what_cannot_be_taken_is_refused_with_its_field(greenfield):
    elsewhere = (
        "https://elsewhere.example/",
        "http://127.0.0.1:9464/metrics",
        f"{URL}\0",
        "",
        1,
    )
    events = [
        {"url": URL, "authorizedEvents": one} for one in (1, {"specificEvents": "x"})
    ]
    wrong = {
        "": [[]],
        "url": [{"url": url} for url in elsewhere],
        "secret": [{"url": URL, "secret": secret} for secret in ("x" * 201, "a\0b")],
        "authorizedEvents": events,
    }
    for path, bodies in wrong.items():
        for body in bodies:
            answer = greenfield.ask("POST", WEBHOOKS, body)
            assert answer.status_code == 422, (body, answer.text)
            assert answer.json[0]["path"].startswith(path), answer.text
    assert greenfield.ask("GET", WEBHOOKS).json == []


def test_a_merchant_has_a_bounded_number_of_webhooks_in_all_its_shops(greenfield):
    shop = greenfield.shop
    add = partial(receivers.add, shop.service.db, now=shop.clock(), kinds=[])
    add(shop.merchant_id, URL, None), add(shop.merchant_id, None, "true")
    sister = GreenfieldShop(shop, url="https://sister.example")
    assert sister.ask("POST", WEBHOOKS, {"url": sister.url}).status_code == 200
    for number in range(17):
        assert (
            greenfield.ask("POST", WEBHOOKS, {"url": f"{URL}&{number}"}).status_code
            == 200
        )
    for who in (greenfield, sister):
        refused = who.ask("POST", WEBHOOKS, {"url": f"{who.url}/20"})
        assert (refused.status_code, refused.json[0]["path"]) == (422, "url")
        assert "20" in refused.json[0]["message"]
    assert greenfield.ask("POST", WEBHOOKS, {"url": f"{URL}&1"}).status_code == 200
    other = GreenfieldShop(
        shop, url=greenfield.url, merchant_id=shop.add_merchant("other")
    )
    assert other.ask("POST", WEBHOOKS, {"url": URL}).status_code == 200


def test_saves_at_once_make_one_webhook(greenfield):
    with ThreadPoolExecutor(6) as threads:
        saves = [
            threads.submit(greenfield.ask, "POST", WEBHOOKS, {"url": URL})
            for _ in range(6)
        ]
        answers = [save.result(30) for save in saves]
    assert {(one.status_code, one.json["id"]) for one in answers} == {
        (200, answers[0].json["id"])
    }
    assert len(greenfield.ask("GET", WEBHOOKS).json) == 1
