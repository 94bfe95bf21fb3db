"""kill -9 while invoices are created: none that was acknowledged is lost, no address twice."""

import itertools
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import postgres
import pytest
import requests
from builders import REGTEST, Live, open_shop, until

from btcpay.merchants.account import derive
from storage.models import IdempotencyKey, Invoice
from storage.queries import merchants

WRITERS = 8
KEYS_OF_A_WRITER = 8  # 30 writes a minute each; two of them serve to ask again
INVOICES = Invoice.select().order_by(Invoice.seq)
KEYS = IdempotencyKey.select()


@pytest.fixture(params=["sqlite", "postgresql"])
def shop(request, tmp_path, ticker, clock):
    """On each kind of database in every run."""
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/btcpay.db" if is_sqlite else postgres.server().create()
    ticker.reset()
    with open_shop(tmp_path, ticker.url, clock, BTCPAY_DATABASE_URL=url) as opened:
        yield opened


@dataclass
class Writer:
    """Orders one invoice after another until the line is dead; each order has a name of its own.

    Every second one carries its name as Idempotency-Key.
    """

    name: str
    keys: list[str]
    url: str
    acknowledged: list[dict[str, Any]] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)

    def run(self):
        session = requests.Session()
        for number in itertools.count():
            order = f"{self.name}-{number}"
            try:
                response = self.order(session, order, self.keys[number % (len(self.keys) - 2)])
            except requests.RequestException:
                self.unanswered.append(order)
                return
            if response.status_code == 429:
                time.sleep(0.01)
                continue
            assert response.status_code == 201, response.text
            self.acknowledged.append(response.json())

    def order(self, session, order, key):
        headers = {"Authorization": f"Bearer {key}"}
        if int(order.rpartition("-")[2]) % 2:
            headers["Idempotency-Key"] = order
        body = {"amount_usd": 25, "description": order}
        return session.post(f"{self.url}/api/v1/invoices", json=body, headers=headers, timeout=60)


def write_until_killed(shop, live, enough):
    """Eight writers at once; they are killed when `enough` invoices are acknowledged."""
    writers = [
        Writer(f"a{n}", [shop.issue("write") for _ in range(KEYS_OF_A_WRITER)], live.url)
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
    merchant = shop.service.db.only(merchants.BY_ID, id=shop.merchant_id)
    indexes = sorted(row.address_index for row in found.values())
    assert indexes == list(range(merchant.next_index))
    assert {row.address_index: row.deposit_address for row in found.values()} == {
        i: derive(merchant.descriptor, i, REGTEST) for i in indexes
    }
    assert len({row.description for row in found.values()}) == len(found)


def test_kill_9_under_load_loses_no_acknowledged_invoice_and_gives_no_address_twice(shop, tmp_path):
    folder = tmp_path / "serve"
    folder.mkdir()
    with Live(shop, folder) as live:
        writers = write_until_killed(shop, live, enough=150)
    acknowledged = [invoice for writer in writers for invoice in writer.acknowledged]
    assert_sound(shop, acknowledged)
    with Live(shop, tmp_path) as live:
        assert any(writer.unanswered for writer in writers)
        acknowledged += ask_again(shop, live, writers)
        for writer in writers:  # what clients are shown is what they were promised
            for invoice in writer.acknowledged[:20]:
                answer = live.ask("GET", f"/invoices/{invoice['id']}", writer.keys[0])
                assert answer.json() == invoice
    assert_sound(shop, acknowledged)


def ask_again(shop, live, writers):
    """The orders that the kill left unanswered, given again with their Idempotency-Key.

    The invoice was stored with its answer, which comes again; or nothing was, and the key's
    claim stands for its minute, or was not stored either.
    """
    again = []
    answers = {row.idempotency_key: row.response for row in shop.service.db.rows(KEYS)}
    stored = {row.description: row.id for row in shop.service.db.rows(INVOICES)}
    for writer in writers:
        writer.url = live.url
        for order in writer.unanswered:
            if not int(order.rpartition("-")[2]) % 2:
                continue
            response = writer.order(requests.Session(), order, writer.keys[-1])
            held = order in answers and answers[order] is None
            assert response.status_code == (409 if held else 201), response.text
            assert held <= (order not in stored)
            if response.status_code == 201:
                assert response.json()["id"] == stored.get(order, response.json()["id"])
                again.append(response.json())
    return again
