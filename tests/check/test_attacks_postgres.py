"""Attacks on what a server changes: commits in between, other machines' clocks, shared locks."""

import socket
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
from peewee import OperationalError

from app import create_app
from btcpay.api import idempotency
from btcpay.check.block_reader import BlockReader
from btcpay.check.report import Report
from btcpay.check.undo import undo_above
from btcpay.invoices.emails import erase_emails
from btcpay.prices.price import Prices
from btcpay.values.times import to_ms
from storage.database import open_database
from storage.queries import blocks, keys
from storage.queries.lists import mempool_watch
from storage.write_behind import Notes
from tests.support import postgres
from tests.support.accounts import Sweeper
from tests.support.builders import at_once, pay, until
from tests.support.fake_esplora import open_till

pytestmark = pytest.mark.slow


@pytest.fixture
def till(tmp_path, ticker, clock):
    url = postgres.server().create()
    with open_till(tmp_path, ticker, clock, BLOCKTILL_DATABASE_URL=url) as opened:
        yield opened
    postgres.server().drop(url)


@pytest.fixture
def shop(till):
    return till.shop


@pytest.fixture
def other(shop):
    """Another machine's connections to the same database."""
    db = open_database(shop.environ["BLOCKTILL_DATABASE_URL"])
    yield db
    db.close()


def waiting(shop):
    """The number of the database's connections that wait for a lock."""
    with psycopg.connect(shop.environ["BLOCKTILL_DATABASE_URL"]) as connection:
        counted = connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return counted.fetchone()[0]


def test_a_key_that_is_fulfilled_at_the_last_moment_is_not_taken_over(
    shop, other, clock, monkeypatch
):
    """The holder has slept for a minute, and is about to commit when a retry takes its key."""
    subject = {
        "merchant_id": shop.merchant_id,
        "operation": "create-invoice",
        "idempotency_key": "order-1",
        "body_sha256": "0" * 64,
    }
    made = []
    keep = idempotency._fulfil
    kept = threading.Event()
    may_commit = threading.Event()

    def order(db, name):
        def make(_):
            made.append(name)
            return f'{{"id": "{name}"}}'

        return idempotency.create_once(db, subject, clock(), lambda: None, make)[0]

    def slowly(*given):
        answer = keep(*given)
        kept.set()
        may_commit.wait(60)
        return answer

    monkeypatch.setattr(idempotency, "_fulfil", slowly)
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(order, other, "one")
        assert kept.wait(60)
        clock.move(seconds=61)
        retry = pool.submit(order, shop.service.db, "two")
        until(lambda: waiting(shop) or retry.done(), "the retry to wait for it")
        may_commit.set()
        assert slow.result(60) == retry.result(60) == '{"id": "one"}' and made == [
            "one"
        ]


def test_notes_go_on_after_all_connections_were_taken(shop, clock, monkeypatch):
    monkeypatch.setattr(shop.service.db.connection, "_wait_timeout", 0.1)
    notes = Notes(shop.service.db)
    db = shop.service.db
    free = threading.Event()
    taken = []

    def hold():
        with db.borrow_connection():
            taken.append(1)
            free.wait(60)

    with ThreadPoolExecutor(20) as pool:
        for _ in range(20):
            pool.submit(hold)
        until(lambda: len(taken) == 20, "every connection to be taken")
        assert shop.client.get("/readyz").status_code == 503
        notes.note(keys.USED, "key_1", clock())
        until(lambda: not notes._pending and notes._thread, "the note to be lost")
        threading.Event().wait(1)
        free.set()
    key_id = shop.key_ids[shop.write_key]
    notes.note(keys.USED, key_id, clock())
    used = f"SELECT last_used_ms FROM api_key WHERE id = '{key_id}'"  # noqa: S608
    until(lambda: shop.sql(used).fetchone()[0] == to_ms(clock()), "the next note")
    notes.close()


def test_erasing_addresses_holds_no_invoice_while_it_waits_for_another(
    till, other, clock
):
    one, two = (
        till.shop.invoice(5, customer_email="ada@customer.example") for _ in range(2)
    )
    for invoice in (one, two):
        pay(till.shop, invoice)
        clock.move(seconds=1)
    clock.move(days=30)
    db = till.shop.service.db
    with ThreadPoolExecutor(1) as pool:
        with db.write():
            db.run(mempool_watch.FAILED, id=two["id"], at=0)
            erased = pool.submit(erase_emails, other, 30, clock())
            until(
                lambda: erased.done() or waiting(till.shop),
                "the erasing to end or wait",
            )
            db.run(mempool_watch.FAILED, id=one["id"], at=0)
        assert erased.result(60) == 2


def test_nothing_is_settled_while_a_block_is_undone(till, other, monkeypatch):
    """Another runner, whose explorer still shows the block, is about to book money in it."""
    shop = till.shop
    db = till.shop.service.db
    pay(shop, shop.invoice(25))
    key = shop.issue("write", shop.add_merchant("another"))
    late = shop.post("/invoices", {"amount_usd": 25}, key).json
    really = db.rows

    with ThreadPoolExecutor(1) as pool:
        settled: list[Future[str]] = []

        def rows(query, **values):
            if query is blocks.PAID_ABOVE:
                elsewhere = replace(shop, service=replace(shop.service, db=other))
                settled.append(pool.submit(pay, elsewhere, late))
                until(
                    lambda: settled[0].done() or waiting(shop),
                    "the other to settle or wait",
                )
                assert not settled[0].done()
            return really(query, **values)

        monkeypatch.setattr(db, "rows", rows)
        with db.write():
            undo_above(db, till.settings, 99, till.clock())
        settled[0].result(60)
    assert shop.get(f"/invoices/{late['id']}", key).json["status"] == "paid"


def test_no_connection_is_open_when_workers_are_forked(shop, clock):
    """With gunicorn's --preload the application is made before: they would share its socket."""
    url = shop.environ["BLOCKTILL_DATABASE_URL"]
    shop.close()
    made = create_app(shop.service.settings, clock)
    # By itself each question sees who is there now: within a transaction the first answer is kept.
    with psycopg.connect(url, autocommit=True) as connection:
        others = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        until(lambda: connection.execute(others).fetchone() == (0,), "none to be open")
    made.extensions["blocktill"].close()


def test_what_the_url_asks_of_the_session_is_not_lost(shop):
    """A schema of its own, say: without it the tables would be looked for in another."""
    url = shop.environ["BLOCKTILL_DATABASE_URL"]
    db = open_database(
        f"{url}?options=-csearch_path%3Dshop%20-clock_timeout%3D0&connect_timeout=3"
    )
    with db.borrow_connection():
        ask = db.connection.execute_sql
        assert ask("SHOW search_path").fetchone() == ("shop",)
        assert ask("SHOW lock_timeout").fetchone() == ("10s",)
        assert (
            db.connection.connection().info.get_parameters()["connect_timeout"] == "3"
        )
    db.close()


def test_threads_wait_together_for_a_server_that_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://any:any@127.0.0.1:{silent.getsockname()[1]}/any?connect_timeout=4"
        db = open_database(url)

        def ask(_):
            with pytest.raises(OperationalError), db.borrow_connection():
                pass

        began_s = time.monotonic()
        at_once(8, ask)
        assert time.monotonic() - began_s < 24  # one after the other they would take 32


@pytest.mark.parametrize("early", ["the payment", "the spend"])
def test_a_coin_that_one_runner_finds_and_another_sees_spent_at_the_same_time_is_spent(
    till, other, monkeypatch, early
):
    """Two of them, should the lock be lost with its connection: each has one of the blocks."""
    sweeper = Sweeper(till)
    invoice = sweeper.invoice()
    till.look_for(invoice)
    txid = till.pay(invoice)
    till.mine()
    sweeper.sweep(invoice, txid)
    till.mine()
    db = till.shop.service.db
    settings = till.settings

    def reader(db):
        return BlockReader(
            db, settings, till.explorers(db=db), Prices(settings), till.clock
        )

    monkeypatch.setattr(BlockReader, "read_all", lambda *_: None)
    till.checker().run()
    paying, spending = (
        db.get(blocks.AT, height=till.sandbox.chain.ledger.height - below)
        for below in (1, 0)
    )
    first, second = (paying, spending) if early == "the payment" else (spending, paying)
    really = db.rows

    with ThreadPoolExecutor(1) as pool:
        read: list[Future[bool]] = []

        def rows(query, **values):
            found = really(query, **values)
            if query is mempool_watch.WITH_INPUTS and not read:
                read.append(pool.submit(reader(other)._read, second, Report()))
                until(
                    lambda: read[0].done() or waiting(till.shop),
                    "the other to read or wait",
                )
            return found

        monkeypatch.setattr(db, "rows", rows)
        assert reader(db)._read(first, Report())
        assert read[0].result(60)
    monkeypatch.undo()
    till.check()
    assert till.look(invoice)["status"] == "paid" and till.balance() == (0, 0)
