"""The documents' receiver in thirty lines, beside the service: it delivers what is paid, once."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
import requests

from btcpay.notify.transports import headers, new_secret
from tests.support.builders import Live, clean_environ, until
from tests.support.fake_esplora import Terminal
from tests.support.paths import PROJECT
from tests.support.ports import free_port

pytestmark = pytest.mark.slow


def program():
    text = (PROJECT / "docs/developers/webhooks.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    return found


def _answers(url):
    try:
        return requests.get(url, timeout=60).status_code == 501
    except requests.ConnectionError:
        return False


class Documented:
    """The program as whoever copies it starts it; `said` is what it prints."""

    def __init__(self, till, folder, live):
        self.till = till
        self._out = folder / "receiver.out"
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/"
        added = Terminal(till).json("webhook", "add", "shop", self.url)
        self.id = added["id"]
        self.secret = added["secret"]
        environ = clean_environ(
            BLOCKTILL_URL=live.url,
            BLOCKTILL_KEY=till.shop.issue("read"),
            WEBHOOK_SECRET=self.secret,
        )
        with self._out.open("wb") as out, (folder / "receiver.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program().replace("5000", str(port))],
                env=environ,
                stdout=out,
                stderr=log,
            )
        until(lambda: _answers(self.url), "the receiver")

    @property
    def said(self):
        return self._out.read_text().splitlines()

    def hear(self, invoice, kind="invoice.paid", secret=None, age=timedelta(), **more):
        """Sends an event about an invoice; the answer's status."""
        body = json.dumps({"type": kind, "data": {"invoice": {"id": invoice}}}).encode()
        signed = headers(
            [secret or self.secret], "evt_1", datetime.now(UTC) - age, body
        )
        return requests.post(
            self.url, body, headers=signed | more, timeout=60
        ).status_code


@pytest.fixture
def receiver(till, tmp_path):
    live = Live(till.shop, tmp_path)
    started = Documented(till, tmp_path, live)
    yield started
    started.process.kill()
    started.process.wait()
    live.kill()


def test_the_example_receiver_has_at_most_thirty_lines():
    assert sum(bool(line.strip()) for line in program().splitlines()) <= 30


def test_the_receiver_accepts_a_test_event_and_delivers_nothing(till, receiver):
    Terminal(till).run("webhook", "test", receiver.id)
    assert receiver.said == []


def test_the_example_receiver_delivers_what_get_invoice_calls_paid_once(till, receiver):
    invoice = till.shop.invoice()
    assert receiver.hear(invoice["id"]) == 204  # it says paid, and is not
    assert receiver.said == []
    till.confirm(invoice)
    Terminal(till).run("check")
    until(lambda: receiver.said == [f"deliver {invoice['id']}"], "the webhook")
    for kind in ("invoice.paid", "invoice.created", "payment.received"):
        assert receiver.hear(invoice["id"], kind) == 204
    assert receiver.said == [f"deliver {invoice['id']}"]


def test_the_example_receiver_refuses_what_is_not_genuine(till, receiver):
    invoice = till.shop.invoice()
    till.confirm(invoice)
    forged = {
        "an old message": {"age": timedelta(minutes=6)},
        "another secret": {"secret": new_secret()},
        "another id": {"webhook-id": "evt_4"},
        "no signature": {"webhook-signature": ""},
    }
    for case, of in forged.items():
        assert receiver.hear(invoice["id"], **of) == 401, case
    assert receiver.said == []
