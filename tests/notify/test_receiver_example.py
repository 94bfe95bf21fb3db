"""The receiver of docs/developers/webhooks.md takes what is genuine, once, and nothing else."""

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import requests
from builders import until
from paths import PROJECT
from ports import free_port

from btcpay.notify.transports import headers, new_secret

SECRET = new_secret()
PAID = b'{"type":"invoice.paid","timestamp":"","data":{"invoice":{"id":"inv_1"}}}'


def program():
    text = (PROJECT / "docs/developers/webhooks.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    return found


def _answers(url):
    try:
        return requests.get(url, timeout=60).status_code == 501
    except requests.ConnectionError:
        return False


def post(url, signed, body=PAID):
    return requests.post(url, data=body, headers=signed, timeout=60).status_code


def test_it_delivers_once_and_refuses_what_is_not_genuine():
    assert sum(bool(line.strip()) for line in program().splitlines()) <= 30
    port, now = free_port(), datetime.now(UTC)
    url, signed = f"http://127.0.0.1:{port}/", headers([SECRET], "evt_1", now, PAID)
    other = PAID.replace(b"inv_1", b"inv_2")
    receiver = subprocess.Popen(
        [sys.executable, "-c", program().replace("5000", str(port))],
        env={"WEBHOOK_SECRET": SECRET},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: _answers(url), "the receiver")
        for forged in (
            headers([SECRET], "evt_2", now - timedelta(minutes=6), PAID),
            headers([new_secret()], "evt_3", now, PAID),
            signed | {"webhook-id": "evt_4"},
            signed | {"webhook-signature": ""},
        ):
            assert post(url, forged) == 401
        assert post(url, signed) == post(url, signed) == 204
        assert post(url, headers([new_secret(), SECRET], "evt_5", now, other), other) == 204
        lines = [receiver.stdout.readline() for _ in range(2)]
        assert lines == ["deliver inv_1\n", "deliver inv_2\n"]
    finally:
        receiver.kill()
        receiver.wait()
