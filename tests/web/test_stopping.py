"""SIGTERM: requests under way get their answers, and every thread ends."""

import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import requests
from builders import Live, until
from playground import children_of, is_alive

from storage.queries import keys


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


def test_with_a_kept_connection_it_ends_soon_and_what_was_noted_is_written(shop, tmp_path):
    with Live(shop, tmp_path) as live, requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {shop.read_key}"
        assert session.get(f"{live.url}/api/v1/balance", timeout=60).status_code == 200
        started_s = time.monotonic()
        live.stop()
        assert live.wait() == 0
        assert time.monotonic() - started_s < 20
        assert "Traceback" not in live.log()
    (key,) = shop.service.db.rows(keys.BY_ID, id=shop.key_ids[shop.read_key])
    assert key.last_used_at is not None


def test_a_worker_that_is_stopped_while_it_still_loads_ends_without_a_fault(shop, tmp_path):
    with Live(shop, tmp_path, by_command=True) as live:
        (first,) = children_of(live.pid)
        os.kill(first, signal.SIGKILL)
        (second,) = until(lambda: set(children_of(live.pid)) - {first}, "the next worker")
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
