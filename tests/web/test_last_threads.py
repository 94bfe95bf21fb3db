"""Orders that wait, for a locked file or a price, never hold the last threads.

Others are answered at once.
"""

import sqlite3
import time

import flood
from builders import Live, at_once, until
from no_writes import counts

from storage.database import sqlite_path
from storage.turns import PLACES


def test_others_are_answered_at_once_while_another_process_holds_the_lock(shop, tmp_path):
    invoice, keys, answers = shop.invoice(), flood.write_keys(shop), {}
    before = counts(shop)
    with Live(shop, tmp_path) as live:
        assert live.ask("POST", "/invoices", shop.write_key, json={"amount_usd": 5}).ok
        other = sqlite3.connect(sqlite_path(shop.environ["BTCPAY_DATABASE_URL"]))
        other.execute("BEGIN EXCLUSIVE")
        with flood.orders_under_way(live, keys, answers):
            alive_s = flood.slowest_s(f"{live.url}/healthz")
            page_s = flood.slowest_s(f"{live.url}/pay/{invoice['id']}", 5)
            other.rollback()
            other.close()
        assert max(alive_s, page_s) < flood.SOON_S, (alive_s, page_s)
        assert "Traceback" not in live.log()
    assert set(answers) == {201, 503} and len(answers[201]) >= PLACES - 1  # one may be a note's
    assert all(b'"code":"server_error"' in answer for answer in answers[503])
    stored = len(answers[201]) + 1
    assert counts(shop) == (before[0] + stored, before[1], before[2] + stored)


def test_others_are_answered_at_once_while_no_source_says_a_price(shop, ticker, tmp_path):
    invoice, keys, answers = shop.invoice(), flood.write_keys(shop), {}
    before = counts(shop)
    with ticker.silent(), Live(shop, tmp_path) as live, flood.orders_under_way(live, keys, answers):
        until(lambda: ticker.asked, "the orders to be under way")
        alive_s = flood.slowest_s(f"{live.url}/healthz")
        page_s = flood.slowest_s(f"{live.url}/pay/{invoice['id']}", 5)
    assert max(alive_s, page_s) < flood.SOON_S, (alive_s, page_s)
    assert set(answers) == {503} and counts(shop) == before
    assert all(b'"code":"price_unavailable"' in answer for answer in answers[503])


def test_who_waits_for_a_lock_that_stays_is_refused_with_the_first(shop, monkeypatch):
    """One after the other they would wait ten seconds each."""
    db = shop.service.db
    monkeypatch.setitem(db.connection.connect_params, "timeout", 0.5)
    link = shop.link(title="Tip jar")

    def ask(number):
        if number % 2:
            answer = shop.post("/invoices", {"amount_usd": 5})
        else:
            answer = shop.client.post(f"/link/{link['id']}", data={"amount": "5"})
        db.close()
        return answer.status_code

    shop.invoice()
    other = sqlite3.connect(sqlite_path(shop.environ["BTCPAY_DATABASE_URL"]))
    other.execute("BEGIN IMMEDIATE")
    started_s = time.monotonic()
    assert at_once(12, ask) == [500] * 12
    assert time.monotonic() - started_s < 5
    other.rollback()
    other.close()
    assert shop.post("/invoices", {"amount_usd": 5}).status_code == 201
