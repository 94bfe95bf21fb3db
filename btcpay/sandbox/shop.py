"""The client of the shop, which is the service that runs together with the sandbox.

It uses the HTTP API with an API key of its own, and the command line.
"""

import json
import subprocess
import sys
import threading
import time
from decimal import Decimal
from typing import Any

import requests

from btcpay.sandbox.errors import BadRequest, ShopAway

Json = dict[str, Any]

MERCHANT = "demo"
TIMEOUT_S = 10
COMMAND_TIMEOUT_S = 60
CACHED_S = 1.0  # the pages share a list: a key may read 120 times a minute


class Shop:
    """The client of the shop.

    `root` is the service's URL, `key` an API key with the scope `write`. All methods
    that send a request or run a command may raise ShopAway.
    """

    def __init__(self, root: str, key: str) -> None:
        self._root = root
        self._api = f"{root}/api/v1"
        self._key = key
        self._lock = threading.Lock()
        self._cached_invoices: list[Json] = []
        self._cached_at_s: float | None = None

    def invoices(self) -> list[Json]:
        """Returns the newest hundred invoices, as they were at most a second ago."""
        now_s = time.monotonic()
        with self._lock:
            if self._cached_at_s is None or now_s - self._cached_at_s > CACHED_S:
                self._cached_invoices = self._list("/invoices")
                self._cached_at_s = now_s
            return self._cached_invoices

    def forget_invoices(self) -> None:
        """Clears the cache of `invoices`."""
        with self._lock:
            self._cached_at_s = None

    def invoice(self, id: str) -> Json:
        """Returns the current state of an invoice.

        Raises BadRequest if the shop has no invoice with this id.
        """
        if not (id.isascii() and id.replace("_", "").isalnum()):
            raise BadRequest("Invoice: give an id such as inv_eJ1R0DRkbm1q2C35XQfBX4ys")
        answer = self._ask("GET", f"{self._api}/invoices/{id}")
        if answer.status_code == 404:
            raise BadRequest(f"Invoice: the shop has no {id}")
        return _json(answer)

    def create(
        self,
        usd: Decimal,
        description: str,
        expires_in_s: int | None = None,
    ) -> Json:
        """Creates an invoice over `usd` dollars and returns it.

        If the shop refuses this, raises BadRequest with the shop's error message.
        """
        # Composed as text, since json.dumps does not support Decimal and a float is not
        # exact.
        fields = [f'"amount_usd": {usd}', f'"description": {json.dumps(description)}']
        if expires_in_s:
            hours = Decimal(expires_in_s) / 3600
            fields.append(f'"expires_in_hours": {hours:.6f}')
        body = "{" + ", ".join(fields) + "}"
        answer = self._ask("POST", f"{self._api}/invoices", data=body.encode())
        if not answer.ok:
            raise BadRequest(f"The shop says: {answer.json()['error']['message']}")
        self.forget_invoices()
        return _json(answer)

    def look(self, invoice: Json) -> Json:
        """Returns the invoice's status, as the shop answers it to the customer's page.

        The request makes the shop search the mempool for payments.
        """
        return _json(self._ask("GET", f"{self._root}/pay/{invoice['id']}/status"))

    def has_received(self, txid: str) -> bool:
        return any(payment["tx_hash"] == txid for payment in self._list("/payments"))

    def login_url(self) -> str:
        """Returns a new login link to the merchant's pages.

        Runs a command of the shop, as API keys cannot create login links.
        """
        return self._command("merchant", "login", MERCHANT).strip()

    def refund(self, *words: str) -> Json:
        """Runs `blocktill refund` with these arguments, and returns the JSON that it prints.

        A command is necessary since the API cannot create refunds.
        """
        return dict(json.loads(self._command("refund", *words, "--json")))

    def give_address(self, refund: Json, address: str) -> None:
        """Gives the shop the payer's address for a refund, by a POST to the refund's page."""
        fields = {"address": address, "keep": "yes"}
        answer = self._ask("POST", f"{self._root}/refund/{refund['id']}", fields)
        if not answer.ok:
            raise ShopAway("the shop takes no address; the log says more")

    def _command(self, *words: str) -> str:
        """Runs a command of the shop, and returns its output."""
        result = subprocess.run(
            [sys.executable, "-P", "-m", "btcpay", *words],
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # affects standard error only: JSON is UTF-8
            timeout=COMMAND_TIMEOUT_S,
        )
        if result.returncode:
            raise ShopAway(
                f"`blocktill {words[0]} {words[1]}` failed: {result.stderr.strip()}"
            )
        return result.stdout

    def _list(self, path: str) -> list[Json]:
        """Returns the newest hundred items of a list in the API."""
        answer = self._ask("GET", f"{self._api}{path}?limit=100")
        return list(_json(answer)["data"])

    def _ask(
        self,
        method: str,
        url: str,
        data: bytes | Json | None = None,
    ) -> requests.Response:
        headers = {}
        if url.startswith(self._api):
            headers = {
                "Content-Type": "application/json",
                "Authorization": f"Bearer {self._key}",
            }
        try:
            return requests.request(
                method,
                url,
                headers=headers,
                timeout=TIMEOUT_S,
                data=data,
            )
        except requests.RequestException:
            raise ShopAway("the shop does not answer; the log says more") from None


def _json(answer: requests.Response) -> Json:
    if not answer.ok:
        raise ShopAway(f"the shop answers {answer.status_code}; the log says more")
    return dict(answer.json())
