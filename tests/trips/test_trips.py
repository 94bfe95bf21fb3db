"""Trips through what README starts: chain, service and check as processes, over real HTTP."""

import json
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from builders import until
from forge import forge
from playground import (
    Playground,
    children_of,
    is_alive,
    start_playground,
)
from ports import free_port


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    started = start_playground(tmp_path_factory.mktemp("playground"))
    yield started
    if started.process.poll() is None:
        started.stop()


def new_invoice(playground: Playground, **fields: object) -> dict:
    return playground.post("/invoices", {"amount_usd": 25} | fields)


def test_the_printed_curl_line_creates_an_invoice(playground: Playground) -> None:
    line = re.search(r"curl .*", playground.introduction)[0]
    url = re.search(r"http\S+", line)[0]
    headers = dict(re.findall(r"-H '([^:']+): ([^']+)'", line))
    body = re.search(r"-d '([^']+)'", line)[1]
    invoice = requests.post(url, data=body, headers=headers, timeout=10).json()
    assert (invoice["status"], invoice["amount_usd_quote"]) == ("open", 25)
    assert requests.get(playground.pay_url, timeout=10).status_code == 200


def test_an_invoice_goes_from_open_to_seen_to_paid(playground: Playground) -> None:
    invoice = new_invoice(playground)
    txid = playground.pay(invoice)
    seen = until(
        lambda: (s := playground.page_status(invoice))["unconfirmed_sats"] and s,
        "the payment to be seen",
        every_s=0.05,
    )
    assert (seen["status"], seen["missing_sats"], seen["confirmations"]) == ("open", 0, 0)
    playground.press("mine")
    paid = playground.wait_for_status(invoice, "paid")
    assert paid["tx_hash"] == txid
    assert paid["paid_at"] >= paid["created_at"]
    payments = playground.get(f"/payments?invoice_id={invoice['id']}")["data"]
    assert [(p["amount_sats"], p["tx_hash"]) for p in payments] == [(invoice["amount_sats"], txid)]
    assert payments[0]["amount_usd_at_receipt"] == 25
    assert "Paid" in requests.get(invoice["pay_url"], timeout=10).text


def test_a_part_leaves_the_invoice_open_and_the_rest_pays_it(playground: Playground) -> None:
    invoice = new_invoice(playground)
    playground.pay(invoice, button="pay-short")
    playground.press("mine")
    part = until(
        lambda: (s := playground.page_status(invoice))["received_sats"] and s,
        "the part to be counted",
        every_s=0.05,
    )
    missing = invoice["amount_sats"] - invoice["amount_sats"] // 2
    assert (part["status"], part["missing_sats"]) == ("open", missing)
    txid = playground.pay(invoice, missing)
    playground.press("mine")
    assert playground.wait_for_status(invoice, "paid")["tx_hash"] == txid
    payments = playground.get(f"/payments?invoice_id={invoice['id']}")["data"]
    assert sum(payment["amount_sats"] for payment in payments) == invoice["amount_sats"]
    assert len(payments) == 2


def test_too_much_is_paid_and_the_payment_shows_what_came(playground: Playground) -> None:
    invoice = new_invoice(playground)
    playground.pay(invoice, button="pay-too-much")
    playground.press("mine")
    playground.wait_for_status(invoice, "paid")
    (payment,) = playground.get(f"/payments?invoice_id={invoice['id']}")["data"]
    assert payment["amount_sats"] == invoice["amount_sats"] + invoice["amount_sats"] // 10


def test_a_payment_link_makes_invoices_that_get_paid(playground: Playground) -> None:
    before = len(playground.get("/invoices?limit=100")["data"])
    assert requests.get(playground.link, timeout=10).status_code == 200
    assert len(playground.get("/invoices?limit=100")["data"]) == before
    response = requests.post(playground.link, data={"amount_usd": "12.50"}, timeout=10)
    assert [hop.status_code for hop in response.history] == [303]
    invoice_id = urlsplit(response.url).path.rpartition("/")[2]
    invoice = playground.get(f"/invoices/{invoice_id}")
    assert invoice["amount_usd_quote"] == 12.5
    assert playground.link.endswith(invoice["payment_link_id"])
    playground.pay(invoice)
    playground.press("mine")
    playground.wait_for_status(invoice, "paid")


def test_a_replaced_payment_counts_once(playground: Playground) -> None:
    invoice = new_invoice(playground)
    first = playground.pay(invoice)
    until(
        lambda: playground.page_status(invoice)["unconfirmed_sats"], "it to be seen", every_s=0.05
    )
    second = playground.press("replace", txid=first)["txid"]
    playground.press("mine")
    assert playground.wait_for_status(invoice, "paid")["tx_hash"] == second
    assert len(playground.get(f"/payments?invoice_id={invoice['id']}")["data"]) == 1


def test_a_payment_taken_back_leaves_the_invoice_open(playground: Playground) -> None:
    invoice = new_invoice(playground)
    txid = playground.pay(invoice)
    until(
        lambda: playground.page_status(invoice)["unconfirmed_sats"], "it to be seen", every_s=0.05
    )
    playground.press("replace", txid=txid, away="on")
    playground.press("mine")
    until(
        lambda: playground.page_status(invoice)["received_sats"] == 0, "it to be gone", every_s=0.05
    )
    assert playground.get(f"/invoices/{invoice['id']}")["status"] == "open"


def test_an_explorer_that_is_down_changes_nothing_and_one_that_is_back_settles(
    playground: Playground,
) -> None:
    invoice = new_invoice(playground, expires_in_hours=0.0005)
    playground.press("explorer", state="down")
    try:
        until(
            lambda: (s := playground.page_status(invoice))["now"] > s["expires_at"],
            "the deadline",
            every_s=0.05,
        )
        refused = playground.btcpay("check", "--invoice", invoice["id"], "--json")
        assert refused.returncode == 1
        assert json.loads(refused.stdout)["failed"] == [invoice["id"]]
        assert playground.get(f"/invoices/{invoice['id']}")["status"] == "open"
    finally:
        playground.press("explorer", state="up")
    playground.wait_for_status(invoice, "expired")


def test_the_command_line_explains_an_invoice(playground: Playground) -> None:
    invoice = new_invoice(playground)
    shown = playground.btcpay("invoice", "show", invoice["id"], "--json")
    assert json.loads(shown.stdout)["standing"]["reason"] == (
        "open: nothing has been seen at the address"
    )


def test_a_second_start_reuses_chain_merchant_and_key_and_ctrl_c_ends_every_process(
    tmp_path: Path,
) -> None:
    first = start_playground(tmp_path)
    invoice = new_invoice(first)
    first.pay(invoice)
    first.press("mine")
    paid = first.wait_for_status(invoice, "paid")
    family = [first.process.pid, *children_of(first.process.pid)]
    assert len(family) >= 4  # sandbox, chain, gunicorn and its worker, check
    assert first.stop(signal.SIGINT) == 0
    until(lambda: not any(map(is_alive, family)), "every process to end")

    ports = [urlsplit(url).port for url in (first.service, first.chain)]
    second = start_playground(tmp_path, *ports)
    try:
        assert second.key == first.key
        assert second.get(f"/invoices/{invoice['id']}") == paid
        assert len(second.get("/payments")["data"]) == 1
    finally:
        second.stop(signal.SIGTERM)


def test_a_taken_port_is_a_clear_message(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        environ = {
            "BTCPAY_DATABASE_URL": f"sqlite:///{tmp_path}/btcpay.db",
            "BTCPAY_BASE_URL": f"http://127.0.0.1:{free_port()}",
        }
        words = ["sandbox", "--state", str(tmp_path), "--port", str(port)]
        refused = forge().run(environ, words)
    assert refused.status == 1
    assert f"127.0.0.1:{port} is taken" in refused.errors


def test_the_sandbox_refuses_any_network_but_regtest(tmp_path: Path) -> None:
    environ = {"BTCPAY_NETWORK": "mainnet", "BTCPAY_DATABASE_URL": f"sqlite:///{tmp_path}/m.db"}
    refused = forge().run(environ, ["sandbox", "--state", str(tmp_path)])
    assert refused.status == 1
    assert "regtest only" in refused.errors
