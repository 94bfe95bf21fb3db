"""The shop beside the chain, met over HTTP as any client meets it, with a key of its own."""

import json
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Generic, TypeVar

import requests

from btcpay.sandbox.errors import BadRequest, ShopAway

Json = dict[str, Any]
T = TypeVar("T")

TIMEOUT_S = 10
# A key may read 120 times in a minute: the page asks each second, whoever looks at it.
INVOICES_S, LINKS_S, PAGES_S = 1.0, 10.0, 30.0
AS_JSON = {"Content-Type": "application/json"}


class Shop:
    """`root` is where the service listens, `key` a write key of the merchant whose shop it is.

    Every method may raise ShopAway.
    """

    def __init__(self, root: str, key: str) -> None:
        self._root, self._api = root, f"{root}/api/v1"
        self._headers = {"Authorization": f"Bearer {key}"}
        self.invoices = Kept(lambda: self._list("/invoices"), INVOICES_S)
        self.links = Kept(lambda: self._list("/payment-links"), LINKS_S)
        self.merchant_page = Kept(self._merchant_page, PAGES_S)

    def invoice(self, id: str) -> Json:
        """As the API shows it now. Raises BadRequest when the shop has no such invoice."""
        if not (id.isascii() and id.replace("_", "").isalnum()):
            raise BadRequest("Invoice: give an id such as inv_eJ1R0DRkbm1q2C35XQfBX4ys")
        answer = self._ask("GET", f"{self._api}/invoices/{id}")
        if answer.status_code == 404:
            raise BadRequest(f"Invoice: the shop has no {id}")
        return _json(answer)

    def create(self, usd: Decimal, description: str, expires_in_s: int | None = None) -> Json:
        """A new invoice over `usd` dollars. Raises BadRequest with what the service says."""
        hours = f', "expires_in_hours": {Decimal(expires_in_s) / 3600:.6f}' if expires_in_s else ""
        # Written by hand, since the amount is an exact number.
        body = f'{{"amount_usd": {usd}, "description": {json.dumps(description)}{hours}}}'
        answer = self._ask("POST", f"{self._api}/invoices", data=body.encode())
        if not answer.ok:
            raise BadRequest(f"The shop says: {answer.json()['error']['message']}")
        self.invoices.forget()
        return _json(answer)

    def look(self, invoice: Json) -> Json:
        """What the invoice's page polls; the shop then asks the mempool, as for a payer."""
        path = f"/pay/{invoice['id']}/status"
        return _json(self._ask("GET", self._root + path))

    def has_received(self, txid: str) -> bool:
        """Whether a transaction is among the newest payments."""
        return any(payment["tx_hash"] == txid for payment in self._list("/payments"))

    def _merchant_page(self) -> str:
        """Where the merchant's own pages are; empty when this service has none."""
        url = f"{self._root}/merchant"
        answer = self._ask("GET", url, allow_redirects=False)
        return "" if answer.status_code == 404 else url

    def _list(self, path: str) -> list[Json]:
        """The newest hundred."""
        found: list[Json] = _json(self._ask("GET", f"{self._api}{path}?limit=100"))["data"]
        return found

    def _ask(self, method: str, url: str, **more: Any) -> requests.Response:
        headers = AS_JSON | (self._headers if url.startswith(self._api) else {})
        try:
            return requests.request(method, url, headers=headers, timeout=TIMEOUT_S, **more)
        except requests.RequestException:
            raise ShopAway("the shop does not answer") from None


class Kept(Generic[T]):
    """What was answered last, asked for again once it is older than `seconds`. Thread safe."""

    def __init__(self, ask: Callable[[], T], seconds: float) -> None:
        self._ask, self._seconds = ask, seconds
        self._lock = threading.Lock()
        self._value: T | None = None
        self._until_s = 0.0

    def __call__(self) -> T:
        with self._lock:
            if self._value is None or time.monotonic() >= self._until_s:
                self._value = self._ask()
                self._until_s = time.monotonic() + self._seconds
            return self._value

    def forget(self) -> None:
        """It has changed: the next one who wants it asks."""
        self._until_s = 0.0


def _json(answer: requests.Response) -> Json:
    if not answer.ok:
        raise ShopAway(f"the shop answers {answer.status_code}")
    found: Json = answer.json()
    return found
