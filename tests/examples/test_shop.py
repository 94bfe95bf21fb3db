"""`examples/shop/`: from an order to its delivery, by webhook and by polling."""

import base64
import hashlib
import hmac
import json
import subprocess
import sys
import time

import pytest
import requests

from btcpay.sandbox.payer.wallet import double_spends
from tests.support.builders import Live, answers, clean_environ, until
from tests.support.fake_esplora import Terminal
from tests.support.paths import PROJECT
from tests.support.ports import free_port

pytestmark = pytest.mark.slow

PROGRAM = PROJECT / "examples" / "shop" / "shop.py"


class ExampleShop:
    """The program as whoever copies it starts it; `said` is what it prints."""

    def __init__(self, till, folder, live, poll_s):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/"
        secret = Terminal(till).json("webhook", "add", "shop", f"{self.url}hooks")[
            "secret"
        ]
        self._key = base64.b64decode(secret.removeprefix("whsec_"))
        environ = clean_environ(
            BLOCKTILL_URL=live.url,
            BLOCKTILL_KEY=till.shop.write_key,
            WEBHOOK_SECRET=secret,
            SHOP_DATABASE=str(folder / "shop.db"),
            SHOP_PORT=str(port),
            POLL_SECONDS=str(poll_s),
        )
        self._out = folder / "shop.out"
        with self._out.open("wb") as out, (folder / "shop.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, PROGRAM], env=environ, stdout=out, stderr=log
            )
        until(lambda: answers(self.url), "the shop's first answer")

    @property
    def said(self):
        lines = self._out.read_text().splitlines()
        return [line for line in lines if line.startswith(("deliver", "hold back"))]

    def order(self, number):
        """Presses the button of a form; the id of the invoice that it leads to."""
        answer = requests.post(
            self.url, {"number": number}, allow_redirects=False, timeout=60
        )
        assert answer.status_code == 303
        return answer.headers["location"].rpartition("/pay/")[2]

    def hear(self, invoice, age_s=0, key=b"", **headers):
        """Sends a webhook about an invoice, as Standard Webhooks says; the answer's status."""
        at = str(int(time.time()) - age_s)
        body = json.dumps(
            {"type": "invoice.paid", "data": {"invoice": {"id": invoice}}}
        ).encode()
        signed = hmac.digest(
            key or self._key, f"evt_1.{at}.".encode() + body, hashlib.sha256
        )
        signature = f"v1,{base64.b64encode(signed).decode()}"
        headers = {
            "Content-Type": "application/json",
            "webhook-id": "evt_1",
            "webhook-timestamp": at,
            "webhook-signature": signature,
        } | {name.replace("_", "-"): text for name, text in headers.items()}
        return requests.post(
            f"{self.url}hooks", body, headers=headers, timeout=60
        ).status_code


@pytest.fixture
def live(till, tmp_path):
    started = Live(till.shop, tmp_path)
    yield started
    started.kill()


def pay(till, invoice):
    till.confirm(till.shop.get(f"/invoices/{invoice}").json)


@pytest.fixture(params=[3600])
def example(request, till, live, tmp_path):
    """Polls every hour, unless a test says otherwise."""
    shop = ExampleShop(till, tmp_path, live, request.param)
    yield shop
    shop.process.kill()
    shop.process.wait()


def test_the_example_shop_has_less_than_a_hundred_lines():
    assert len(PROGRAM.read_text().splitlines()) < 100


def test_an_order_is_paid_once_and_delivered_once(till, example):
    invoice = example.order("1001")
    assert example.order("1001") == invoice != example.order("1002")
    assert example.hear(invoice) == 204
    assert example.said == []
    pay(till, invoice)
    assert [example.hear(invoice) for _ in range(2)] == [204, 204]
    assert example.said == [f"deliver {invoice}"]
    till.sandbox.chain.reorganise(1, till.now, double_spends(till.sandbox.wallet, 1))
    till.check()
    assert example.hear(invoice) == 204
    assert example.said[1:] == [f"hold back {invoice}"]


def test_a_check_tells_it_by_a_webhook(till, example):
    invoice = example.order("1001")
    till.pay(till.shop.get(f"/invoices/{invoice}").json)
    till.mine()
    Terminal(till).run("check")
    until(lambda: example.said == [f"deliver {invoice}"], "the webhook")


def test_the_shop_accepts_a_test_event_and_sells_nothing(till, example):
    """Were it believed, or asked about, it would fail: nothing has its invoice."""
    (hook,) = Terminal(till).json("webhook", "list")
    Terminal(till).run("webhook", "test", hook["id"])
    invoice = example.order("1001")
    pay(till, invoice)
    assert example.hear(invoice) == 204
    assert example.said == [f"deliver {invoice}"]


FORGED = {
    "another secret": {"key": b"another"},
    "an old message": {"age_s": 301},
    "a signature of another message": {"webhook_signature": f"v1,{'A' * 43}="},
    "no signature": {"webhook_signature": ""},
    "another version": {"webhook_signature": "v1a,abc"},
    "another time": {"webhook_timestamp": "1"},
    "another id": {"webhook_id": "evt_2"},
}


def test_a_webhook_that_is_not_ours_is_refused(till, example):
    invoice = example.order("1001")
    pay(till, invoice)
    for case, forged in FORGED.items():
        assert example.hear(invoice, **forged) == 401, case
    assert example.said == []


@pytest.mark.parametrize("example", [1], indirect=True)
def test_polling_finds_what_no_webhook_told(till, example):
    invoice = example.order("1001")
    pay(till, invoice)
    until(lambda: example.said == [f"deliver {invoice}"], "the poll")
