"""kill -9 of the serving process amid eight writers: what was acknowledged is there, once."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import postgres
import pytest
import requests
from builders import Clock, Live, Shop, TickerServer, open_shop
from databases import raw, tables

WRITERS = 8
LOAD_S = 1.5
WRITES_OF_A_KEY = 25  # a key's window holds 30


@pytest.fixture(params=["sqlite", "postgresql"])
def shop(
    request: pytest.FixtureRequest, tmp_path: Path, ticker: TickerServer, clock: Clock
) -> Iterator[Shop]:
    """On each kind of database in every run."""
    ticker.reset()
    on_server = request.param == "postgresql"
    url = postgres.server().create() if on_server else f"sqlite:///{tmp_path}/btcpay.db"
    with open_shop(tmp_path, ticker.url, clock, BTCPAY_DATABASE_URL=url) as opened:
        yield opened
    if on_server:
        postgres.server().drop(url)


class Writer(threading.Thread):
    """Orders until the server is gone; `made` has what was acknowledged, by Idempotency-Key."""

    def __init__(self, live: Live, name: str, keys: list[str]) -> None:
        super().__init__(name=name)
        self._live, self._keys = live, keys
        self.made: dict[str, dict] = {}

    def run(self) -> None:
        for number in range(len(self._keys) * WRITES_OF_A_KEY):
            order = f"{self.name} {number}"
            key = self._keys[number // WRITES_OF_A_KEY]
            body, headers = {"amount_usd": 5, "description": order}, {"Idempotency-Key": order}
            try:
                answer = self._live.ask("POST", "/invoices", key, json=body, headers=headers)
            except requests.RequestException:
                return
            assert answer.status_code == 201, answer.text
            self.made[order] = answer.json()


def test_no_acknowledged_invoice_is_lost_and_no_address_is_given_twice(
    shop: Shop, tmp_path: Path
) -> None:
    made: dict[str, dict] = {}
    for life in range(3):
        with Live(shop, tmp_path) as live:
            writers = [
                Writer(live, f"life {life} writer {n}", [shop.issue("write") for _ in range(3)])
                for n in range(WRITERS)
            ]
            for writer in writers:
                writer.start()
            time.sleep(LOAD_S)
            live.kill()
            for writer in writers:
                writer.join(30)
                assert writer.made, "the server was killed before it had answered"
                made |= writer.made
    with Live(shop, tmp_path) as live:
        for invoice in list(made.values())[:: len(made) // 20]:
            assert live.ask("GET", f"/invoices/{invoice['id']}", shop.read_key).json() == invoice
    with raw(shop.environ["BTCPAY_DATABASE_URL"]) as connection:
        rows = tables(connection)
    stored = {row["id"]: row for row in rows["invoice"]}
    for order, invoice in made.items():
        row = stored[invoice["id"]]
        assert (row["deposit_address"], row["description"]) == (invoice["deposit_address"], order)
    assert len({row["deposit_address"] for row in stored.values()}) == len(stored)
    assert len({row["description"] for row in stored.values()}) == len(stored)
    # What was stored and not acknowledged is one order of each writer and life at most.
    assert len(stored) - len(made) <= 3 * WRITERS
    (merchant,) = rows["merchant"]
    assert sorted(row["address_index"] for row in stored.values()) == list(range(len(stored)))
    assert merchant["next_index"] == len(stored)
