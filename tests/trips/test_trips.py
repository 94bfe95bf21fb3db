"""Trips through what README starts: chain, service and check as processes, over real HTTP."""

import json
import signal
import subprocess
import sys

import requests

from tests.support.builders import until
from tests.support.paths import PROJECT


def test_each_event_is_shown_by_listen_and_kept_by_the_workbench(playground):
    words = [sys.executable, "-m", "btcpay", "listen"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    listening = subprocess.Popen(words, cwd=PROJECT, env=playground.environ, **pipes)
    try:
        until(lambda: "listening" in listening.stderr.readline(), "`listen`")
        invoice = playground.post("/invoices", {"amount_usd": 25})
        playground.pay(invoice)
        playground.press("mine")
        life = []
        while "invoice.paid" not in life:
            event = json.loads(listening.stdout.readline())
            if event["data"].get("invoice", {}).get("id") == invoice["id"]:
                life.append(event["type"])
        assert life[0] == "invoice.created" and life[-2:] == [
            "payment.received",
            "invoice.paid",
        ]
    finally:
        listening.send_signal(signal.SIGINT)
        listening.communicate(timeout=30)
    assert f"{sys.executable} -m btcpay doctor\n" in playground.introduction
    assert "the same with `listen`" in playground.introduction
    log = playground.talk.parent / "sandbox/webhooks.log"
    assert log.name in playground.introduction

    def kept():
        text = log.read_text() if log.exists() else ""  # the first event makes it
        events = map(json.loads, text.splitlines())
        about = (
            one
            for one in events
            if one["data"].get("invoice", {}).get("id") == invoice["id"]
        )
        return sorted(one["type"] for one in about)

    until(lambda: kept() == sorted(life), "the workbench to have them all")
    forged = requests.post(
        f"{playground.chain}/sandbox/webhook", data=b"{}", timeout=60
    )
    assert forged.status_code == 401 and "{}" not in log.read_text().splitlines()
