"""`/metrics`: what requests, checks and the database say, from whichever worker answers."""

import os
import platform
import shutil
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from btcpay import __version__
from btcpay.health.scrape import FOLDER, MEMORY, MetricsServer, ScrapeHandler
from tests.support.builders import Live, until
from tests.support.playground import children_of, is_alive
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer, needs_redis
from tests.support.samples import by_name, figures

pytestmark = pytest.mark.slow


def scrape(port, path="/metrics"):
    answer = requests.get(f"http://127.0.0.1:{port}{path}", timeout=60)
    assert answer.status_code == 200
    return by_name(text_string_to_metric_families(answer.text))


def test_requests_are_counted_by_operation_and_status(shop, tmp_path):
    port = free_port()
    with Live(shop, tmp_path, BLOCKTILL_METRICS_BIND=f"127.0.0.1:{port}") as live:
        for _ in range(3):
            live.ask("GET", "/balance", shop.read_key)
        live.ask("POST", "/invoices", shop.read_key)
        live.ask("POST", "/invoices", shop.write_key, json={"amount_usd": 5})
        requests.get(f"{live.url}/nothing", timeout=60)
        found = scrape(port)
    counted = "blocktill_requests_total{operation=%s}{status=%d}"
    assert found[counted % ("get-balance", 200)] == 3
    assert found[counted % ("create-invoice", 403)] == 1
    assert found[counted % ("create-invoice", 201)] == 1
    assert found[counted % ("none", 404)] == 1
    assert found["blocktill_request_seconds_count{operation=create-invoice}"] == 2
    assert (
        found["blocktill_request_seconds_bucket{le=+Inf}{operation=get-balance}"] == 3
    )
    assert found["blocktill_request_seconds_sum{operation=get-balance}"] > 0
    assert found["blocktill_open_invoices"] == 1
    assert 0 <= found["blocktill_price_age_seconds"] < 10
    assert found["blocktill_price_refreshes_total{outcome=price}"] == 1
    assert found["blocktill_database_up"] == found["blocktill_rate_limit_store_up"] == 1


def has_new_worker(live, old):
    """One that answers scrapes, in a thread: before it is so far a signal may be lost on it."""
    new = set(children_of(live.pid)) - set(old)
    return any(len(list(Path(f"/proc/{pid}/task").glob("*"))) > 1 for pid in new)


@needs_redis
def test_two_workers_are_added_up_and_a_dead_ones_counts_stay(shop, tmp_path):
    port = free_port()
    folder = tmp_path / "counts"
    folder.mkdir()
    with RedisServer(tmp_path) as redis:
        environ = {
            "GUNICORN_CMD_ARGS": "--workers 2",
            "BLOCKTILL_RATE_LIMIT_STORE": redis.url,
            "BLOCKTILL_METRICS_BIND": f"127.0.0.1:{port}",
            FOLDER: str(folder),
        }
        with Live(shop, tmp_path, **environ) as live, ThreadPoolExecutor(8) as pool:
            until(lambda: live.log().count("Booting worker") == 2, "the second worker")

            def health(_):
                return requests.get(f"{live.url}/healthz", timeout=60).status_code

            counted = "blocktill_requests_total{operation=healthz}{status=200}"
            for round in (1, 2, 3):
                assert set(pool.map(health, range(100))) == {200}
                # Whoever answers says the same.
                assert {scrape(port)[counted] for _ in range(6)} == {100.0 * round}
                workers = children_of(live.pid)
                assert len(workers) == 2
                os.kill(workers[0], signal.SIGKILL)
                until(lambda w=workers: has_new_worker(live, w), "a new worker")
                until(
                    lambda n=round: scrape(port)[counted] == 100 * n, "the same count"
                )
            live.stop()
            assert live.wait() == 0


def test_the_metrics_have_an_address_of_their_own_and_a_folder_that_ends_with_the_server(
    shop, tmp_path
):
    def folders():
        return list(Path(MEMORY).glob(f"blocktill-metrics-{live.pid}-*"))

    port = free_port()
    environ = {"BLOCKTILL_METRICS_BIND": f"127.0.0.1:{port}"}
    with Live(shop, tmp_path, by_command=True, **environ) as live:
        assert len(folders()) == 1
        assert requests.get(f"{live.url}/metrics", timeout=60).status_code == 404
        assert live.ask("GET", "/metrics", shop.read_key).status_code == 404
        for path in ("/", "/api/v1/balance", "/healthz"):
            assert (
                requests.get(f"http://127.0.0.1:{port}{path}", timeout=60).status_code
                == 404
            )
        with socket.create_connection(
            ("127.0.0.1", port)
        ):  # a scraper that says nothing
            started_s = time.monotonic()
            assert live.ask("GET", "/balance", shop.read_key).status_code == 200
            assert time.monotonic() - started_s < 20
        live.stop()
        assert live.wait() == 0
    assert folders() == []


def test_the_folder_of_a_shop_that_was_killed_is_removed_by_the_next(shop, tmp_path):
    def folders(live):
        return list(Path(MEMORY).glob(f"blocktill-metrics-{live.pid}-*"))

    def start(name):
        port = free_port()
        folder = tmp_path / name
        folder.mkdir()
        return Live(
            shop,
            folder,
            words=("run",),
            by_command=True,
            BLOCKTILL_METRICS_BIND=f"127.0.0.1:{port}",
        )

    with start("killed") as killed:
        family = children_of(killed.pid)
        os.kill(killed.pid, signal.SIGKILL)
        until(lambda: not any(map(is_alive, family)), "all its processes to end")
        assert len(folders(killed)) == 1
        with start("living") as living:
            assert folders(killed) == []
            with start("next"):
                assert len(folders(living)) == 1


def test_a_scraper_that_says_nothing_does_not_keep_the_next_one_out(monkeypatch):
    monkeypatch.setattr(ScrapeHandler, "timeout", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        scraped = MetricsServer([], listener)
        with socket.create_connection(address):
            assert scrape(address[1]) == {}
        scraped.end()


def test_a_shop_serves_without_metrics_when_their_address_is_taken(shop, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        with Live(shop, tmp_path, BLOCKTILL_METRICS_BIND=taken) as live:
            assert live.ask("GET", "/balance", shop.read_key).status_code == 200
            assert live.log().count("no metrics: BLOCKTILL_METRICS_BIND") == 1


def finish(till):
    checker = till.checker()
    checker.finish(checker.run())


def test_what_checks_did_is_added_up_in_the_database(till):
    before = figures(till.shop)
    assert before["blocktill_checks_total{outcome=complete}"] == 0
    assert "blocktill_last_check_timestamp_seconds" not in before
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    finish(till)
    finish(till)
    found = figures(till.shop)
    assert found["blocktill_checks_total{outcome=complete}"] == 2
    assert found["blocktill_checks_total{outcome=incomplete}"] == 0
    assert found["blocktill_check_seconds_total"] >= 0
    assert found["blocktill_last_check_timestamp_seconds"] == till.clock().timestamp()
    assert found["blocktill_explorer_calls_total{host=127.0.0.1}"] >= 4
    assert found["blocktill_explorer_failures_total{host=127.0.0.1}"] == 0
    assert found["blocktill_settled_satoshis"] == invoice["amount_sats"]
    assert found["blocktill_open_invoices"] == 0


def test_what_a_reorganisation_undoes_is_not_settled(till):
    till.pay(till.shop.invoice())
    till.mine()
    finish(till)
    till.mine()
    finish(till)  # a block that follows another is no reorganisation
    counts = ("blocktill_reorganisations_total", "blocktill_payments_undone_total")
    before = figures(till.shop)
    assert before["blocktill_settled_satoshis"] > 0
    till.sandbox.chain.reorganise(2, till.now, [])
    finish(till)
    found = figures(till.shop)
    assert found["blocktill_settled_satoshis"] == 0
    assert [(before[name], found[name]) for name in counts] == [(0, 1), (0, 1)]


def test_each_wallet_has_the_gap_limit_that_it_needs_and_the_one_that_it_has(till):
    other = till.shop.add_merchant('The "other" shop')
    till.shop.sql(f"UPDATE merchant SET wallet_gap_limit = 100 WHERE id = {other}")  # noqa: S608
    for _ in range(6):
        last = till.shop.invoice()
    found = figures(till.shop)
    assert found["blocktill_gap_needed{merchant=shop}"] == 7
    assert found["blocktill_gap_limit{merchant=shop}"] == 20
    assert found['blocktill_gap_limit{merchant=The "other" shop}'] == 100
    till.pay(last)
    till.look_for(last)
    till.shop.invoice()
    assert figures(till.shop)["blocktill_gap_needed{merchant=shop}"] == 6


def test_the_free_disk_is_that_of_the_databases_folder(shop, tmp_path):
    free = shutil.disk_usage(tmp_path).free
    assert abs(figures(shop)["blocktill_disk_free_bytes"] - free) < 2e9


def test_a_database_that_does_not_answer_is_told_and_the_rest_stays(shop):
    shop.get("/balance")
    shop.sql("ALTER TABLE tally RENAME TO gone")
    found = figures(shop)
    assert found["blocktill_database_up"] == 0
    assert "blocktill_open_invoices" not in found
    assert found["blocktill_requests_total{operation=get-balance}{status=200}"] == 1
    python = platform.python_version()
    assert (
        found[f"blocktill_build_info{{python={python}}}{{version={__version__}}}"] == 1
    )


def test_the_age_of_the_price_grows(shop):
    assert "blocktill_price_age_seconds" not in figures(shop)
    shop.invoice()
    shop.clock.move(seconds=90)
    assert figures(shop)["blocktill_price_age_seconds"] == 90
