"""The sandbox's merchant, and what it has: keys, an invoice, a payment link, a webhook."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from btcpay.bitcoin.address import b58check_encode
from btcpay.bitcoin.hd import HARDENED
from btcpay.merchants import keys, sessions
from btcpay.merchants.account import parse_account
from btcpay.merchants.merchants import add_merchant
from btcpay.notify import receivers
from btcpay.settings.settings import Settings
from btcpay.values.times import utc_now
from storage.database import Database
from storage.queries import merchants
from storage.queries.receivers import LIST

MERCHANT, MEMO, TITLE = "demo", "Demo", "Tip jar"
WEBHOOK_PATH = "/sandbox/webhook"
TPUB = bytes.fromhex("043587cf")  # SLIP-132: an account key of a test network
# BIP341's point H, whose private key nobody knows.
NOBODYS_KEY = bytes.fromhex("0250929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0")


def write_key(db: Database, settings: Settings, file: Path) -> str:
    """A write key of the demo merchant's, named after the file that keeps it for the next start."""
    secret = file.read_text(encoding="ascii").strip() if file.exists() else ""
    if secret and keys.caller_of(db, secret, utc_now()):
        return secret
    merchant_id = _merchant_id(db, settings)
    secret = keys.issue(db, settings.network, merchant_id, "write", file.name, utc_now()).secret
    _keep(file, secret)
    return secret


def add_webhook(db: Database, settings: Settings, chain_url: str, file: Path) -> None:
    """Sends events to the workbench, in place of the start before; the file gets the secret."""
    for row in db.rows(LIST):
        if row.url and row.url.endswith(WEBHOOK_PATH):
            receivers.remove(db, row.id)
    owner_id, url = _merchant_id(db, settings), chain_url + WEBHOOK_PATH
    _keep(file, str(receivers.add(db, owner_id, url, None, [], utc_now()).secret))


def login_url(db: Database, settings: Settings) -> str:
    """It works once, within ten minutes."""
    return sessions.login_url(db, settings.base_url, _merchant_id(db, settings), utc_now())


def _merchant_id(db: Database, settings: Settings) -> int:
    row = db.row(merchants.BY_NAME, name=MERCHANT)
    if row is None:
        account = parse_account(_nobodys_account(), settings.network)
        row = add_merchant(db, MERCHANT, account, utc_now())
    return row.id


def _keep(file: Path, secret: str) -> None:
    file.touch(mode=0o600)
    file.write_text(secret + "\n", encoding="ascii")


def _nobodys_account() -> str:
    """The tpub of an account m/84'/1'/0' without a private key: what it is paid is play money."""
    place = bytes([3]) + os.urandom(4) + HARDENED.to_bytes(4, "big")
    return b58check_encode(TPUB + place + os.urandom(32) + NOBODYS_KEY)


@dataclass(frozen=True)
class Demo:
    api: str
    secret: str

    def pay_url(self) -> str:
        """The page of an open invoice, the last start's if it is open: each one widens the gap."""
        found = self._ask("GET", "/invoices?status=open&limit=100")["data"]
        invoice = next((one for one in found if one["description"] == MEMO), None)
        order = {"amount_usd": 25, "description": MEMO}
        return str((invoice or self._ask("POST", "/invoices", order))["pay_url"])

    def link_url(self) -> str:
        """A payment link's page, the last start's if it is active."""
        found = self._ask("GET", "/payment-links?limit=100")["data"]
        link = next((o for o in found if (o["title"], o["status"]) == (TITLE, "active")), None)
        return str((link or self._ask("POST", "/payment-links", {"title": TITLE}))["link_url"])

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.secret}"}
        answer = requests.request(method, self.api + path, json=body, headers=headers, timeout=30)
        answer.raise_for_status()
        return answer.json()
