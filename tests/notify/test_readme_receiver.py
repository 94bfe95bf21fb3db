"""The receiver of README takes what is genuine, once, and nothing else."""

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import requests
from builders import until
from paths import PROJECT
from ports import free_port

from btcpay.notify.standard_webhook import headers, new_secret

SECRET = new_secret()
PAID = b'{"type":"invoice.paid","timestamp":"","data":{"invoice":{"id":"inv_1"}}}'


def program() -> str:
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    return found


@pytest.fixture(scope="module")
def receiver() -> Iterator[tuple[str, subprocess.Popen]]:
    port = free_port()
    source = program().replace("5000", str(port))
    process = subprocess.Popen(
        [sys.executable, "-c", source],
        env={"WEBHOOK_SECRET": SECRET},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    url = f"http://127.0.0.1:{port}/"
    until(lambda: _answers(url), "the receiver")
    yield url, process
    process.kill()
    process.wait()


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).status_code == 501
    except requests.ConnectionError:
        return False


def post(url: str, body: bytes, **changed: str) -> int:
    signed = headers([SECRET], "evt_1", datetime.now(UTC), body)
    signed |= {name.replace("_", "-"): value for name, value in changed.items()}
    return requests.post(url, data=body, headers=signed, timeout=5).status_code


def test_it_delivers_once_and_refuses_what_is_not_genuine(receiver):
    url, process = receiver
    assert sum(bool(line.strip()) for line in program().splitlines()) <= 30  # docs/webhooks.md
    old = headers([SECRET], "evt_2", datetime.now(UTC) - timedelta(minutes=6), PAID)
    forged = headers([new_secret()], "evt_3", datetime.now(UTC), PAID)
    assert requests.post(url, data=PAID, headers=old, timeout=5).status_code == 401
    assert requests.post(url, data=PAID, headers=forged, timeout=5).status_code == 401
    assert post(url, PAID, webhook_id="evt_4") == 401
    assert post(url, PAID, webhook_signature="") == 401
    assert post(url, PAID) == post(url, PAID) == 204
    signed = headers(
        [new_secret(), SECRET], "evt_5", datetime.now(UTC), PAID.replace(b"inv_1", b"inv_2")
    )
    answer = requests.post(url, data=PAID.replace(b"inv_1", b"inv_2"), headers=signed, timeout=5)
    assert answer.status_code == 204
    lines = [process.stdout.readline() for _ in range(2)]
    assert lines == ["deliver inv_1\n", "deliver inv_2\n"]
