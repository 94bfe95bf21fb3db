"""The first-run page of a shop on mainnet, for wallets' texts."""

import json
import re
from pathlib import Path
from typing import Any

from werkzeug.test import TestResponse

from btcpay.merchants.first_run import start_url
from tests.support.builders import Clock, Shop, open_shop
from tests.support.merchant_browser import FROM_THIS_SITE, ON
from tests.support.paths import VECTORS
from tests.support.payer import Page

_EXPORTS: dict[str, Any] = json.loads(
    (VECTORS / "wallet_exports.json").read_text(encoding="utf-8")
)
EXPORTS: dict[str, Any] = {case["name"]: case for case in _EXPORTS["cases"]}
FORM = {
    "name": "Harbour Roasters",
    "currency": "EUR",
    "timezone": "Europe/Berlin",
    "language": "en",
    "script": "p2wpkh",
    "skip": "0",
}
# No explorer can be asked, so the number is given; any number of pages may be asked for.
SETTINGS = {
    **ON,
    "BLOCKTILL_NETWORK": "mainnet",
    "BLOCKTILL_EXPLORERS": "none",
    "BLOCKTILL_PEERS": "127.0.0.1:9",
    "BLOCKTILL_VISITOR_ADDRESSES": "off",
}
_ADDRESS = re.compile(r'<code class="grouped" dir="ltr">(.+?)</code>')
_TAG = re.compile("<[^>]+>")


class FirstRun:
    """A shop without a merchant, and the link that makes one."""

    def __init__(self, folder: Path, ticker_url: str) -> None:
        database = f"sqlite:///{folder}/shop.db"
        environ = SETTINGS | {"BLOCKTILL_DATABASE_URL": database}
        self.shop: Shop = open_shop(folder, ticker_url, Clock(), empty=True, **environ)
        root = self.shop.service.settings.base_url
        self.path = start_url(self.shop.service.db, root).removeprefix(root)
        self.client = self.shop.client

    def press(self, text: str) -> TestResponse:
        """What the page shows for this text."""
        return self.client.post(
            self.path, data=FORM | {"key": text}, headers=FROM_THIS_SITE
        )


def addresses_of(page: str) -> list[str]:
    """The addresses that are compared, or the first of each account to choose from."""
    return [_TAG.sub("", groups) for groups in _ADDRESS.findall(page)]


def problem_of(page: str) -> str:
    return Page(page).texts.get("problem", "").strip()
