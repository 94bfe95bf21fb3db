"""kill -9 while invoices are created: none that was acknowledged is lost, no address twice."""

import itertools
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from btcpay.merchants.account import derive
from storage.models import Invoice
from storage.queries import merchants
from tests.support import postgres
from tests.support.builders import REGTEST, Live, open_shop, until

WRITERS = 8
KEYS_OF_A_WRITER = 6  # 30 writes a minute each
INVOICES = Invoice.select().order_by(Invoice.seq)


@pytest.fixture(params=["sqlite", "postgresql"])
def shop(request, tmp_path, ticker, clock):
    """On each kind of database in every run."""
    is_sqlite = request.param == "sqlite"
    url = (
        f"sqlite:///{tmp_path}/blocktill.db"
        if is_sqlite
        else postgres.server().create()
    )
    ticker.reset()
    with open_shop(tmp_path, ticker.url, clock, BLOCKTILL_DATABASE_URL=url) as opened:
        yield opened


@dataclass
class Writer:
    """Orders one invoice after another until the line is dead; each order has a name of its own."""

    name: str
    keys: list[str]
    url: str
    acknowledged: list[dict[str, Any]] = field(default_factory=list)

    def run(self):
        session = requests.Session()
        for number in itertools.count():
            headers = {"Authorization": f"Bearer {self.keys[number % len(self.keys)]}"}
            body = {"amount_usd": 25, "description": f"{self.name}-{number}"}
            try:
                answer = session.post(
                    f"{self.url}/api/v1/invoices",
                    json=body,
                    headers=headers,
                    timeout=60,
                )
            except requests.RequestException:
                return
            if answer.status_code == 429:
                time.sleep(0.01)
                continue
            assert answer.status_code == 201, answer.text
            self.acknowledged.append(answer.json())


def write_until_killed(shop, live, enough):
    """Eight writers at once; they are killed when `enough` invoices are acknowledged."""
    writers = [
        Writer(
            f"a{n}", [shop.issue("write") for _ in range(KEYS_OF_A_WRITER)], live.url
        )
        for n in range(WRITERS)
    ]
    threads = [threading.Thread(target=writer.run) for writer in writers]
    for thread in threads:
        thread.start()
    until(lambda: sum(len(w.acknowledged) for w in writers) >= enough, "the load", 60)
    live.kill()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return writers


def assert_sound(shop, acknowledged):
    """Every acknowledged answer is stored as given; addresses have neither gap nor repetition."""
    found = {row.id: row for row in shop.service.db.rows(INVOICES)}
    for invoice in acknowledged:
        row = found[invoice["id"]]
        for name in ("status", "deposit_address", "amount_sats", "description"):
            assert getattr(row, name) == invoice[name]
    merchant = shop.service.db.get(merchants.BY_ID, id=shop.merchant_id)
    indexes = sorted(row.address_index for row in found.values())
    assert indexes == list(range(merchant.next_index))
    assert {row.address_index: row.deposit_address for row in found.values()} == {
        i: derive(merchant.descriptor, i, REGTEST) for i in indexes
    }
    assert len({row.description for row in found.values()}) == len(found)


def test_kill_9_under_load_loses_no_acknowledged_invoice_and_gives_no_address_twice(
    shop, tmp_path
):
    folder = tmp_path / "serve"
    folder.mkdir()
    with Live(shop, folder) as live:
        writers = write_until_killed(shop, live, enough=150)
    assert_sound(
        shop, [invoice for writer in writers for invoice in writer.acknowledged]
    )
