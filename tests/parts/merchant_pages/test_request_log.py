"""The log of a key's API requests: what is kept, for how long, and that nothing waits for it."""

import contextlib
import sqlite3
import time
from datetime import timedelta

import pytest

from btcpay.merchants import keys
from btcpay.parts.merchant_pages import request_log
from btcpay.parts.merchant_pages.after_check import on_check
from btcpay.parts.merchant_pages.developers.key_requests import (
    MOST_REQUESTS,
    OF_KEY,
    load,
)
from btcpay.values.times import to_ms
from storage.database import LOCK_WAIT_S, open_database, sqlite_path
from tests.support.builders import Live, at_once, until
from tests.support.databases import ON_POSTGRES

LONG = timedelta(days=7, seconds=1)


@pytest.fixture
def log(shop, monkeypatch):
    """The log, which a test writes itself: its thread waits for longer than any test."""
    monkeypatch.setattr(request_log, "FIRST_PAUSE_S", 3_600)
    (log,) = shop.service.request_logs
    return log


def id_of(shop, secret):
    return keys.caller_of(shop.service.db, secret, shop.clock()).key_id


def stored(shop, key_id):
    """What is stored of a key's requests, oldest first."""
    row = shop.service.db.get_or_none(OF_KEY, key_id=key_id)
    return load(row.requests, to_ms(shop.clock())) if row else []


def operations(shop, key_id):
    return [request.operation for request in stored(shop, key_id)]


@pytest.mark.both_databases
def test_each_answer_to_a_key_is_kept_with_its_operation_status_and_error_code(
    shop, log
):
    shop.get("/balance")
    shop.get("/invoices", query_string={"limit": 0})
    shop.get("/invoices/inv_nobodys")
    shop.get("/nothing")
    shop.post("/balance", {}, shop.read_key)
    shop.post("/invoices", {"amount_usd": 5}, shop.read_key)
    log.write()
    found = stored(shop, id_of(shop, shop.read_key))
    assert [(each.operation, each.status, each.error_code) for each in found] == [
        ("get-balance", 200, ""),
        ("list-invoices", 400, "invalid_request"),
        ("get-invoice", 404, "not_found"),
        ("none", 404, "not_found"),
        ("none", 405, "invalid_request"),
        ("create-invoice", 403, "forbidden"),
    ]
    now_ms = to_ms(shop.clock())
    assert all(each.at_ms == now_ms and each.took_ms >= 1 for each in found)
    assert stored(shop, id_of(shop, shop.write_key)) == []


def test_a_request_without_a_valid_key_and_a_merchants_page_are_not_kept(
    shop, log, browser
):
    for key in ("", "sk_test_wrong"):
        assert shop.get("/balance", key).status_code == 401
    shop.client.get("/api/v1/openapi.json")
    browser.page("/keys")
    log.write()
    assert shop.sql("SELECT count(*) FROM key_requests").fetchone()[0] == 0


@pytest.mark.both_databases
def test_a_key_keeps_its_latest_hundred_requests_whatever_a_program_does(shop, log):
    id = id_of(shop, shop.read_key)
    for number in range(1000):
        log.note(id, f"{number}", 200, "", 0.001)
        if number % 300 == 0:
            log.write()
    log.write()
    assert operations(shop, id) == [f"{number}" for number in range(900, 1000)]


def test_the_memory_is_bounded_for_many_keys_and_many_requests(shop, log):
    for number in range(request_log.MOST_KEYS + 5):
        for _ in range(MOST_REQUESTS + 5):
            log.note(f"key_{number}", "get-balance", 200, "", 0.001)
    assert len(log._pending) == request_log.MOST_KEYS
    assert {len(each) for each in log._pending.values()} == {MOST_REQUESTS}


@pytest.mark.both_databases
def test_two_processes_lose_none_of_each_others_requests(shop):
    ids = [id_of(shop, secret) for secret in (shop.read_key, shop.write_key)]
    url = shop.environ["BLOCKTILL_DATABASE_URL"]

    def work(number):
        db = open_database(url)
        log = request_log.RequestLog(db, shop.clock)
        for turn in range(10):
            for id in ids[:: 1 if number else -1]:
                log.note(id, f"{number}.{turn}", 200, "", 0.001)
            until(log.write, "the database to be free")
        log.close()
        db.close()

    at_once(2, work)
    wanted = {f"{number}.{turn}" for number in range(2) for turn in range(10)}
    for id in ids:
        assert sorted(operations(shop, id)) == sorted(wanted)


@pytest.mark.both_databases
def test_requests_older_than_a_week_are_dropped(shop, log):
    id = id_of(shop, shop.read_key)
    log.note(id, "old", 200, "", 0.001)
    log.write()
    shop.clock.move(days=7)
    log.note(id, "new", 200, "", 0.001)
    log.write()
    assert operations(shop, id) == ["old", "new"]
    shop.clock.move(seconds=1)
    assert operations(shop, id) == ["new"]
    on_check(shop.service.db, shop.service.settings, shop.clock())
    assert shop.service.db.get_or_none(OF_KEY, key_id=id)
    shop.clock.move(days=7)
    on_check(shop.service.db, shop.service.settings, shop.clock())
    assert shop.service.db.get_or_none(OF_KEY, key_id=id) is None


@pytest.mark.both_databases
@pytest.mark.parametrize("step", [timedelta(hours=-3), timedelta(days=-400)], ids=str)
def test_new_requests_are_kept_after_the_clock_has_stepped_back(shop, log, step):
    id = id_of(shop, shop.read_key)
    for _ in range(MOST_REQUESTS):
        log.note(id, "before", 200, "", 0.001)
    log.write()
    shop.clock.at += step
    log.note(id, "after", 200, "", 0.001)
    log.write()
    assert operations(shop, id)[-1] == "after"


@pytest.mark.both_databases
def test_a_key_that_is_revoked_keeps_its_requests_and_one_that_is_gone_has_none(
    shop, log
):
    revoked, gone = (shop.key_ids[shop.issue("read")] for _ in range(2))
    for id in (revoked, gone, "key_nobodys"):
        log.note(id, "get-balance", 200, "", 0.001)
    log.write()
    for id in (revoked, gone):
        log.note(id, "get-balance", 200, "", 0.001)
    keys.revoke(shop.service.db, revoked, shop.clock())
    shop.sql(f"DELETE FROM api_key WHERE id = '{gone}'")  # noqa: S608
    assert log.write()
    assert operations(shop, revoked) == ["get-balance"] * 2
    assert shop.sql("SELECT count(*) FROM key_requests").fetchone()[0] == 1


def test_long_and_odd_texts_are_cut_and_a_damaged_row_is_an_empty_log(shop, log):
    id = id_of(shop, shop.read_key)
    for _ in range(MOST_REQUESTS):
        log.note(id, "<script>\x00'\";--" * 999, 599, "\u202e\U0001f600" * 999, 1e9)
    assert log.write()
    assert {len(name) for name in operations(shop, id)} == {80}
    now_ms = to_ms(shop.clock())
    for text in ("", "{}", "[1]", "[[]]", '[["x",1,1,1,1]]', "[[1,2,3,4,5,6]]", "null"):
        assert load(text, now_ms) == []


@contextlib.contextmanager
def locked(shop):
    """Another process's transaction, which writes for a long time."""
    if ON_POSTGRES:
        other = open_database(shop.environ["BLOCKTILL_DATABASE_URL"])
        with other.write():
            other.connection.execute_sql("LOCK TABLE key_requests, api_key")
            yield
        other.close()
        return
    path = sqlite_path(shop.environ["BLOCKTILL_DATABASE_URL"])
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.both_databases
def test_requests_wait_in_memory_while_another_process_writes(shop, log):
    ids = [id_of(shop, secret) for secret in (shop.read_key, shop.write_key)]
    for id in ids:
        log.note(id, "early", 200, "", 0.001)
    with locked(shop):
        began_s = time.monotonic()
        assert not log.write()
        assert time.monotonic() - began_s < LOCK_WAIT_S / 2
    assert not shop.service.db.is_doubtful
    log.note(ids[0], "late", 200, "", 0.001)
    assert log.write()
    assert [operations(shop, id) for id in ids] == [["early", "late"], ["early"]]


@pytest.mark.slow
def test_what_waits_in_memory_is_bounded_too(shop, log):
    with locked(shop):
        for turn in range(2):
            for number in range(request_log.MOST_KEYS):
                for _ in range(MOST_REQUESTS - 1):
                    log.note(f"key_{turn}.{number}", "get-balance", 200, "", 0.001)
            assert not log.write()
    assert len(log._pending) == request_log.MOST_KEYS
    assert log.write() and not log._pending


@pytest.mark.both_databases
def test_a_service_that_is_stopped_writes_what_it_has_collected(shop, tmp_path):
    with Live(shop, tmp_path) as live:
        assert live.ask("GET", "/balance", shop.read_key).ok
        live.stop()
        assert live.wait() == 0
    assert operations(shop, id_of(shop, shop.read_key)) == ["get-balance"]
