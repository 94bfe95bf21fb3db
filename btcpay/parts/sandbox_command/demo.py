"""Creates the sandbox's demo merchant, with an invoice, a payment link and a webhook."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import requests

from btcpay.cli.merchant.access import write_secret
from btcpay.merchants.account import DESCRIPTORS, stored_account
from btcpay.merchants.merchants import add_merchant
from btcpay.notify import receivers
from btcpay.settings.settings import Settings
from btcpay.values.statuses import InvoiceStatus, LinkStatus
from btcpay.values.times import utc_now
from storage.database import Database
from storage.queries import merchants
from storage.queries.receivers import LIST

Json = dict[str, Any]

MERCHANT = "demo"
INVOICE = {"description": "Demo", "amount_usd": 25}
LINK = {"title": "Tip jar"}


class Demo(NamedTuple):
    """A resource of the API that the sandbox shows to its user.

    - `path`: the path of the operation that creates it.
    - `body`: the body of that request.
    - `usable_status`: the status in which one of an earlier run can be used again.
    - `url_field`: the field of the response that has the URL of its page.
    """

    path: str
    body: Json
    usable_status: str
    url_field: str


DEMOS = (
    Demo("/invoices", INVOICE, InvoiceStatus.OPEN, "pay_url"),
    Demo("/payment-links", LINK, LinkStatus.ACTIVE, "link_url"),
)
WEBHOOK_PATH = "/sandbox/webhook"
# An account key at m/84'/1'/0' whose public key is the point H of BIP341. Nobody knows its private
# key, so nobody can spend its coins, which are play money.
TPUB = (
    "tpubDC2Q4xK4XH72Hkrtic4N7zRvC3Yiu2XvsaVPoMb21SRF9fXFb9QCoAbJ"
    "siDKDzsVUBvXzvQcwR1KiWKU4RX2UvnvWWGNZce6fAijaozSXWA"
)
TIMEOUT_S = 30


def add_webhook(db: Database, owner_id: int, chain_url: str, file: Path) -> None:
    """Adds a webhook to the workbench at `chain_url`, and removes the webhooks of earlier runs.

    Writes the new webhook's secret to `file`.
    """
    for row in db.rows(LIST):
        if row.url and row.url.endswith(WEBHOOK_PATH):
            receivers.remove(db, row.id)
    url = chain_url + WEBHOOK_PATH
    receiver = receivers.add(db, owner_id, url, None, [], utc_now())
    write_secret(file, str(receiver.secret))


def merchant_id(db: Database, settings: Settings) -> int:
    """Returns the id of the demo merchant. Adds the merchant if there is none."""
    row = db.get_or_none(merchants.BY_NAME, name=MERCHANT)
    if row is None:
        account = stored_account(DESCRIPTORS["p2wpkh"].format(TPUB))
        row = add_merchant(db, MERCHANT, account, utc_now())
    return row.id


def page_urls(api: str, secret: str) -> Iterator[str]:
    """Yields the URL of an invoice's page, then the URL of a payment link's page.

    Creates both if they do not exist. An invoice and a link of an earlier run are used
    again, since each new address widens the wallet's gap. `api` is the base URL of the
    API, `secret` an API key. Raises requests.RequestException if a request fails.
    """
    for demo in DEMOS:
        url = f"{api}{demo.path}"
        rows = _request("GET", f"{url}?limit=100", secret)["data"]
        usable = [row for row in rows if _is_usable(row, demo)]
        if usable:
            resource = usable[0]
        else:
            resource = _request("POST", url, secret, demo.body)
        yield str(resource[demo.url_field])


def _is_usable(row: Json, demo: Demo) -> bool:
    """True if the row was made for this demo, and has the status in which it can be used.

    A row was made for the demo if one of its fields has the value in the demo's body.
    """
    is_ours = any(row.get(name) == value for name, value in demo.body.items())
    return is_ours and row["status"] == demo.usable_status


def _request(method: str, url: str, secret: str, body: Json | None = None) -> Json:
    headers = {"Authorization": f"Bearer {secret}"}
    response = requests.request(
        method,
        url,
        json=body,
        headers=headers,
        timeout=TIMEOUT_S,
    )
    response.raise_for_status()
    return dict(response.json())
