"""Tests the shop: blocktill sandbox --once -- python3 test_shop.py"""

import base64
import hashlib
import hmac
import json
import os
import random
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

SANDBOX = os.environ["BLOCKTILL_SANDBOX_URL"]
SHOP = [sys.executable, str(Path(__file__).with_name("shop.py"))]
PATIENCE_S = 120
MALFORMED = [
    *("", "no JSON", "null", "[]", "{}", '{"data": null}', '{"data": {"invoice": 5}}'),
    *('{"data": {"invoice": {}}}', '{"data": {"invoice": {"id": 5}}}'),
]


class NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def send(url, data=None, headers=()):
    """Returns status, headers and text of the answer. With data it is a POST."""
    try:
        answer = build_opener(NoRedirect).open(
            Request(url, data, dict(headers)), timeout=30
        )
    except HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers, answer.read().decode()


def press(button, **fields):
    """Presses a button of the sandbox's workbench."""
    accept = {"Accept": "application/json"}
    status, _, text = send(
        f"{SANDBOX}/sandbox/{button}", urlencode(fields).encode(), accept
    )
    assert status == 200, text


def until(condition):
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it took too long"
        time.sleep(0.5)


def blocktill(*words):
    return subprocess.check_output(["blocktill", *words], text=True)


def free_port():
    """Returns a port below those that the system gives to outgoing connections.

    One of these could be taken again before the shop listens on it.
    """
    while True:
        port = random.randrange(20_000, 30_000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue  # somebody listens there
        return port


class ShopTest(unittest.TestCase):
    """Its tests run in the order of their names."""

    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.url = f"http://127.0.0.1:{port}"
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        hook = json.loads(
            blocktill("webhook", "add", "demo", f"{cls.url}/hooks", "--json")
        )
        cls.hook_id = hook["id"]
        cls.secret = base64.b64decode(hook["secret"].removeprefix("whsec_"))
        cls.environ = os.environ | {
            "WEBHOOK_SECRET": hook["secret"],
            "SHOP_FOLDER": str(cls.folder / "orders"),
            "SHOP_PORT": str(port),
        }
        cls.log = cls.folder / "log"
        with cls.log.open("a") as log:
            cls.shop = subprocess.Popen(SHOP, env=cls.environ, stdout=log, stderr=log)
        cls.addClassCleanup(cls.shop.wait)
        cls.addClassCleanup(cls.shop.kill)
        until(cls.answers)

    @classmethod
    def answers(cls):
        if cls.shop.poll() is not None:
            raise AssertionError(cls.log.read_text())
        try:
            return send(f"{cls.url}/")[0] == 200
        except OSError:
            return False

    def buy(self, number):
        """Presses the shop's button. Returns the id of the invoice that it leads to."""
        status, headers, _ = send(
            f"{self.url}/", urlencode({"number": number}).encode()
        )
        self.assertEqual(status, 303)
        return headers["Location"].rpartition("/pay/")[2]

    def return_page(self, invoice):
        return send(f"{self.url}/return?invoice={invoice}")[2]

    def delivered(self, number):
        """Returns what the shop has logged of this order."""
        return re.findall(f"(deliver|hold back) {number}", self.log.read_text())

    def hook(self, invoice, **changes):
        """Sends a webhook about an invoice. Returns the status of the answer."""
        event = {"type": "invoice.paid", "data": {"invoice": {"id": invoice}}}
        return self.send_signed(json.dumps(event), **changes)

    def send_signed(self, text, secret=None, age_s=0, event_id="evt_1", **more):
        """Sends a webhook with a signature. Returns the status of the answer."""
        sent_at = str(int(time.time()) - age_s)
        body = text.encode()
        signed = f"evt_1.{sent_at}.".encode() + body
        digest = hmac.digest(secret or self.secret, signed, hashlib.sha256)
        headers = {
            "Content-Type": "application/json",
            "webhook-id": event_id,
            "webhook-timestamp": sent_at,
            "webhook-signature": "v1," + base64.b64encode(digest).decode(),
        }
        return send(f"{self.url}/hooks", body, headers | more)[0]

    def test_1_an_order_is_paid_and_delivered_once(self):
        number = secrets.token_hex(16)
        invoice = self.buy(number)
        self.assertEqual(self.buy(number), invoice)
        self.assertIn("waiting", self.return_page(invoice))
        self.assertEqual(self.hook(invoice), 204)
        self.assertEqual(self.delivered(number), [])
        press("pay", invoice=invoice)
        press("mine")
        until(lambda: self.delivered(number) == ["deliver"])
        self.assertIn("paid", self.return_page(invoice))
        self.assertEqual([self.hook(invoice), self.hook(invoice)], [204, 204])
        self.assertEqual(self.delivered(number), ["deliver"])
        press("reorganise", double_spend=1)
        until(lambda: self.delivered(number) == ["deliver", "hold back"])
        self.assertIn("waiting", self.return_page(invoice))

    def test_2_a_crash_before_the_invoice_was_saved_changes_nothing(self):
        number = secrets.token_hex(16)
        invoice = self.buy(number)
        order = self.folder / "orders" / number
        kept = json.loads(order.read_text())
        del kept["pay_url"]
        order.write_text(json.dumps(kept))
        (self.folder / "orders" / invoice).unlink()
        self.assertEqual(self.buy(number), invoice)
        self.assertIn("waiting", self.return_page(invoice))
        self.assertNotEqual(self.buy(secrets.token_hex(16)), invoice)

    def test_3_a_forged_webhook_is_refused(self):
        invoice = self.buy(secrets.token_hex(16))
        self.assertEqual(self.hook(invoice, age_s=240), 204)
        self.assertEqual(self.hook(invoice, secret=b"another"), 401)
        self.assertEqual(self.hook(invoice, age_s=301), 401)
        self.assertEqual(self.hook(invoice, age_s=-400), 401)
        self.assertEqual(self.hook(invoice, event_id="evt_2"), 401)
        self.assertEqual(self.hook(invoice, **{"webhook-timestamp": "1"}), 401)
        self.assertEqual(self.hook(invoice, **{"webhook-signature": ""}), 401)
        self.assertEqual(self.hook(invoice, **{"webhook-signature": "v1a,abc"}), 401)

    def test_4_nonsense_is_refused_and_a_test_event_accepted(self):
        for text in MALFORMED:
            self.assertEqual(self.send_signed(text), 400, text)
        self.assertEqual(self.send_signed('{"data": {"bill": {}}}'), 204)
        self.assertEqual(send(f"{self.url}/", b"number=../secret")[0], 400)
        self.assertEqual(send(f"{self.url}/return?invoice=../log")[0], 404)
        blocktill("webhook", "test", self.hook_id)

    def test_5_polling_finds_what_no_webhook_told(self):
        blocktill("webhook", "remove", self.hook_id)
        number = secrets.token_hex(16)
        invoice = self.buy(number)
        press("pay", invoice=invoice)
        press("mine")

        def is_found():
            with self.log.open("a") as log:
                subprocess.run(
                    [*SHOP, "poll"], env=self.environ, stdout=log, check=True
                )
            return "paid" in self.return_page(invoice)

        until(is_found)
        self.assertTrue(is_found())
        self.assertEqual(self.delivered(number), ["deliver"])


if __name__ == "__main__":
    unittest.main()
