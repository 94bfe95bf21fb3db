"""SIGTERM: requests under way get their answers, every thread ends; the last threads stay free."""

import os
import signal
import socket
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import requests

from storage.database import sqlite_path
from storage.queries import keys
from storage.write_queue import PLACES
from tests.support import flood
from tests.support.builders import Live, at_once, until
from tests.support.no_writes import counts
from tests.support.playground import children_of, is_alive

pytestmark = pytest.mark.slow


def test_a_request_under_way_is_answered(shop, tmp_path, ticker):
    order = {"json": {"amount_usd": 5}}
    with Live(shop, tmp_path, by_command=True) as live, ThreadPoolExecutor() as pool:
        with ticker.silent():
            answer = pool.submit(live.ask, "POST", "/invoices", shop.write_key, **order)
            until(lambda: ticker.asked, "the order to be under way")
            live.stop()
            assert not answer.done()
        assert answer.result(60).status_code == 201
        assert live.wait() == 0
    assert len(shop.get("/invoices").json["data"]) == 1


def test_with_a_kept_connection_it_ends_soon_and_what_was_noted_is_written(
    shop, tmp_path
):
    with Live(shop, tmp_path) as live, requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {shop.read_key}"
        assert session.get(f"{live.url}/api/v1/balance", timeout=60).status_code == 200
        started_s = time.monotonic()
        live.stop()
        assert live.wait() == 0
        assert time.monotonic() - started_s < 20
        assert "Traceback" not in live.log()
    (key,) = shop.service.db.rows(keys.BY_ID, id=shop.key_ids[shop.read_key])
    assert key.last_used_ms is not None


def test_a_worker_that_is_stopped_while_it_still_loads_ends_without_a_fault(
    shop, tmp_path
):
    with Live(shop, tmp_path, by_command=True) as live:
        (first,) = children_of(live.pid)
        os.kill(first, signal.SIGKILL)
        (second,) = until(
            lambda: set(children_of(live.pid)) - {first}, "the next worker"
        )
        while is_alive(second):
            os.kill(second, signal.SIGTERM)
            time.sleep(0.01)  # from before it listens to signals until it has loaded
        live.stop()
        assert live.wait() == 0
        assert "Traceback" not in live.log()


def test_an_interruption_at_the_terminal_leaves_nobody_behind(shop, tmp_path):
    with Live(shop, tmp_path) as live:
        workers = children_of(live.pid)
        for worker in workers:
            os.kill(worker, signal.SIGINT)  # the master's to hear
        assert live.ask("GET", "/invoices", shop.read_key).status_code == 200
        assert children_of(live.pid) == workers
        with ExitStack() as clients:  # so many that threads are being started just then
            for _ in range(60):
                client = socket.create_connection(("127.0.0.1", live.port))
                clients.enter_context(client).sendall(b"G")
            os.killpg(live.pid, signal.SIGINT)
        assert live.wait() == 0
        assert not any(map(is_alive, workers))


def test_others_are_answered_at_once_while_another_process_holds_the_lock(
    shop, tmp_path
):
    invoice = shop.invoice()
    keys = flood.write_keys(shop)
    answers = {}
    before = counts(shop)
    with Live(shop, tmp_path) as live:
        assert live.ask("POST", "/invoices", shop.write_key, json={"amount_usd": 5}).ok
        other = sqlite3.connect(sqlite_path(shop.environ["BLOCKTILL_DATABASE_URL"]))
        other.execute("BEGIN EXCLUSIVE")
        with flood.orders_under_way(live, keys, answers):
            alive_s = flood.slowest_s(f"{live.url}/healthz")
            page_s = flood.slowest_s(f"{live.url}/pay/{invoice['id']}", 5)
            other.rollback()
            other.close()
        assert max(alive_s, page_s) < flood.SOON_S, (alive_s, page_s)
        assert "Traceback" not in live.log()
    assert (
        set(answers) == {201, 503} and len(answers[201]) >= PLACES - 1
    )  # one may be a note's
    assert all(b'"code":"server_error"' in answer for answer in answers[503])
    stored = len(answers[201]) + 1
    assert counts(shop) == (before[0] + stored, before[1], before[2] + stored)


def test_others_are_answered_at_once_while_no_source_says_a_price(
    shop, ticker, tmp_path
):
    invoice = shop.invoice()
    keys = flood.write_keys(shop)
    answers = {}
    before = counts(shop)
    with (
        ticker.silent(),
        Live(shop, tmp_path) as live,
        flood.orders_under_way(live, keys, answers),
    ):
        until(lambda: ticker.asked, "the orders to be under way")
        alive_s = flood.slowest_s(f"{live.url}/healthz")
        page_s = flood.slowest_s(f"{live.url}/pay/{invoice['id']}", 5)
    assert max(alive_s, page_s) < flood.SOON_S, (alive_s, page_s)
    assert set(answers) == {503} and counts(shop) == before
    assert all(b'"code":"price_unavailable"' in answer for answer in answers[503])


def test_who_waits_for_a_lock_that_stays_is_refused_with_the_first(shop, monkeypatch):
    """One after the other they would wait ten seconds each."""
    db = shop.service.db
    monkeypatch.setitem(db.connection.connect_params, "timeout", 2)
    link = shop.link(title="Tip jar")

    def ask(number):
        if number % 2:
            answer = shop.post("/invoices", {"amount_usd": 5})
        else:
            answer = shop.client.post(f"/link/{link['id']}", data={"amount": "5"})
        db.close()
        return answer.status_code

    shop.invoice()
    other = sqlite3.connect(sqlite_path(shop.environ["BLOCKTILL_DATABASE_URL"]))
    other.execute("BEGIN IMMEDIATE")
    started_s = time.monotonic()
    assert at_once(12, ask) == [500] * 12
    assert time.monotonic() - started_s < 20
    other.rollback()
    other.close()
    assert shop.post("/invoices", {"amount_usd": 5}).status_code == 201
