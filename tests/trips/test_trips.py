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
from playground import Playground, children_of, is_alive, start_playground
from ports import free_port


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    started = start_playground(tmp_path_factory.mktemp("playground"))
    yield started
    if started.process.poll() is None:
        started.stop()


def test_the_printed_curl_line_creates_an_invoice(playground: Playground) -> None:
    line = re.search(r"curl .*", playground.introduction)[0]
    url = re.search(r"http\S+", line)[0]
    headers = dict(re.findall(r"-H '([^:']+): ([^']+)'", line))
    body = re.search(r"-d '([^']+)'", line)[1]
    invoice = requests.post(url, data=body, headers=headers, timeout=10).json()
    assert (invoice["status"], invoice["amount_usd_quote"]) == ("open", 25)
    assert requests.get(playground.pay_url, timeout=10).status_code == 200


def test_an_invoice_goes_from_open_to_seen_to_paid(playground: Playground) -> None:
    invoice = playground.post("/invoices", {"amount_usd": 25})
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


def test_a_second_start_has_the_same_shop_and_ctrl_c_ends_every_process(tmp_path: Path) -> None:
    first = start_playground(tmp_path)
    invoice = first.post("/invoices", {"amount_usd": 25})
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
        (receiver,) = json.loads(second.btcpay("webhook", "list", "--json").stdout)
        assert receiver["merchant"] == "demo"
    finally:
        second.stop(signal.SIGTERM)


def test_a_taken_port_and_any_network_but_regtest_are_refused(tmp_path: Path) -> None:
    environ = {"BTCPAY_DATABASE_URL": f"sqlite:///{tmp_path}/btcpay.db"}
    words = ["sandbox", "--state", str(tmp_path)]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        at = {"BTCPAY_BASE_URL": f"http://127.0.0.1:{free_port()}"}
        refused = forge().run(environ | at, [*words, "--port", str(port)])
    assert refused.status == 1 and f"127.0.0.1:{port} is taken" in refused.errors
    refused = forge().run(environ | {"BTCPAY_NETWORK": "mainnet"}, words)
    assert refused.status == 1 and "regtest only" in refused.errors
