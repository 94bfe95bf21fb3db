"""The sandbox's merchant, with its keys, an invoice, a payment link and a webhook."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from btcpay.cli.merchant.access import write_secret
from btcpay.merchants.account import parse_account
from btcpay.merchants.merchants import add_merchant
from btcpay.notify import receivers
from btcpay.settings.settings import Settings
from btcpay.values.times import utc_now
from storage.database import Database
from storage.queries import merchants
from storage.queries.receivers import LIST

Json = dict[str, Any]

MERCHANT = "demo"
PAGES: tuple[tuple[str, str, Json, str], ...] = (
    ("/invoices", "open", {"description": "Demo", "amount_usd": 25}, "pay_url"),
    ("/payment-links", "active", {"title": "Tip jar"}, "link_url"),
)
WEBHOOK_PATH = "/sandbox/webhook"
# Of m/84'/1'/0', with BIP341's point H, whose private key nobody knows: its coins are play money.
TPUB = (
    "tpubDC2Q4xK4XH72Hkrtic4N7zRvC3Yiu2XvsaVPoMb21SRF9fXFb9QCoAbJ"
    "siDKDzsVUBvXzvQcwR1KiWKU4RX2UvnvWWGNZce6fAijaozSXWA"
)


def add_webhook(db: Database, owner_id: int, chain_url: str, file: Path) -> None:
    """Sends events to this start's workbench alone; the file keeps the webhook's secret."""
    for row in db.rows(LIST):
        if row.url and row.url.endswith(WEBHOOK_PATH):
            receivers.remove(db, row.id)
    url = chain_url + WEBHOOK_PATH
    write_secret(
        file, str(receivers.add(db, owner_id, url, None, [], utc_now()).secret)
    )


def merchant_id(db: Database, settings: Settings) -> int:
    """The id of the demo merchant, who is added if need be."""
    row = db.row(merchants.BY_NAME, name=MERCHANT)
    if row is None:
        row = add_merchant(
            db, MERCHANT, parse_account(TPUB, settings.network), utc_now()
        )
    return row.id


def pages(api: str, secret: str) -> Iterator[str]:
    """The URLs of an invoice's page and of a link's: the last start's, as each widens the gap."""

    def ask(method: str, path: str, body: Json | None = None) -> Json:
        headers = {"Authorization": f"Bearer {secret}"}
        answer = requests.request(
            method, api + path, json=body, headers=headers, timeout=30
        )
        answer.raise_for_status()
        return dict(answer.json())

    for path, status, body, url in PAGES:
        rows = ask("GET", f"{path}?limit=100")["data"]
        kept = [
            row
            for row in rows
            if row["status"] == status and body.items() & row.items()
        ]
        yield str((kept or [ask("POST", path, body)])[0][url])
