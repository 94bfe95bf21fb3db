"""The sandbox's merchant, with its keys, an invoice, a payment link and a webhook."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from btcpay.bitcoin.address import b58check_encode
from btcpay.bitcoin.keys import HARDENED
from btcpay.cli.merchant.access import keep
from btcpay.merchants.account import parse_account
from btcpay.merchants.merchants import add_merchant
from btcpay.notify import receivers
from btcpay.settings.settings import Settings
from btcpay.values.times import utc_now
from storage.database import Database
from storage.queries import merchants
from storage.queries.receivers import LIST

Json = dict[str, Any]

MERCHANT, MEMO, TITLE = "demo", "Demo", "Tip jar"
WEBHOOK_PATH = "/sandbox/webhook"
TPUB = bytes.fromhex("043587cf")  # SLIP-132: an account key of a test network
# BIP341's point H, whose private key nobody knows.
NOBODYS_KEY = bytes.fromhex("0250929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0")


def add_webhook(db: Database, owner_id: int, chain_url: str, file: Path) -> None:
    """Sends events to this start's workbench alone; the file keeps the webhook's secret."""
    for row in db.rows(LIST):
        if row.url and row.url.endswith(WEBHOOK_PATH):
            receivers.remove(db, row.id)
    url = chain_url + WEBHOOK_PATH
    keep(file, str(receivers.add(db, owner_id, url, None, [], utc_now()).secret))


def merchant_id(db: Database, settings: Settings) -> int:
    """The id of the demo merchant, who is added if need be."""
    row = db.row(merchants.BY_NAME, name=MERCHANT)
    if row is None:
        account = parse_account(_nobodys_account(), settings.network)
        row = add_merchant(db, MERCHANT, account, utc_now())
    return row.id


def _nobodys_account() -> str:
    """The tpub of an account m/84'/1'/0' whose private key nobody has: its coins are play money."""
    place = bytes([3]) + os.urandom(4) + HARDENED.to_bytes(4, "big")
    return b58check_encode(TPUB + place + os.urandom(32) + NOBODYS_KEY)


@dataclass(frozen=True)
class Demo:
    """The demo merchant's API, with a write key: the pages to show at the start."""

    api: str
    secret: str

    def pay_url(self) -> str:
        order = {"description": MEMO, "amount_usd": 25}
        return str(self._kept_or_new("/invoices", "open", "description", order)["pay_url"])

    def link_url(self) -> str:
        link = {"title": TITLE}
        return str(self._kept_or_new("/payment-links", "active", "title", link)["link_url"])

    def _kept_or_new(self, path: str, status: str, name: str, body: Json) -> Json:
        """The last start's, while it has this status, since each new invoice widens the gap."""
        for row in self._ask("GET", f"{path}?limit=100")["data"]:
            if (row["status"], row[name]) == (status, body[name]):
                return dict(row)
        return self._ask("POST", path, body)

    def _ask(self, method: str, path: str, body: Json | None = None) -> Json:
        headers = {"Authorization": f"Bearer {self.secret}"}
        answer = requests.request(method, self.api + path, json=body, headers=headers, timeout=30)
        answer.raise_for_status()
        return dict(answer.json())
