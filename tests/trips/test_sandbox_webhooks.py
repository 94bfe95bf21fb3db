"""`make run` shows events: the workbench keeps what is signed, `listen` prints a life as JSON."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import requests
from builders import until
from paths import PROJECT
from playground import start_playground


def test_the_workbench_keeps_the_events_that_it_is_sent_and_listen_shows_a_life(
    tmp_path: Path,
) -> None:
    playground = start_playground(tmp_path)
    listening = subprocess.Popen(
        [sys.executable, "-m", "btcpay", "listen"],
        cwd=PROJECT,
        env=playground.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: "listening" in listening.stderr.readline(), "`listen`")
        invoice = playground.post("/invoices", {"amount_usd": 25})
        playground.pay(invoice)
        playground.press("mine")
        playground.wait_for_status(invoice, "paid")
        life = []
        while "invoice.paid" not in life:
            event = json.loads(listening.stdout.readline())
            if event["data"]["invoice"]["id"] == invoice["id"]:
                life.append(event["type"])
        assert life[0] == "invoice.created" and life[-2:] == ["payment.received", "invoice.paid"]
        assert f"{sys.executable} -m btcpay doctor\n" in playground.introduction
        assert "the same with `listen`" in playground.introduction
        log = tmp_path / "sandbox" / "webhooks.log"
        assert log.name in playground.introduction
        about = lambda: [line for line in log.read_text().splitlines() if invoice["id"] in line]  # noqa: E731
        until(lambda: len(about()) >= len(life), "the receiver")
        sent = [json.loads(line) for line in log.read_text().splitlines()]
        mine = [one for one in sent if one["data"].get("invoice", {}).get("id") == invoice["id"]]
        assert sorted(one["type"] for one in mine) == sorted(life)
        forged = requests.post(f"{playground.chain}/sandbox/webhook", data=b"{}", timeout=10)
        assert forged.status_code == 401 and "{}" not in log.read_text().splitlines()
    finally:
        listening.send_signal(signal.SIGINT)
        listening.communicate(timeout=30)
        assert playground.stop() == 0
