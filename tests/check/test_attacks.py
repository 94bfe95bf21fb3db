"""What an adversarial review tried: each of these once lost, invented or blocked something."""

import json
import signal
import sqlite3
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from builders import Clock, Shop, TickerServer, clean_environ, until
from databases import about_sqlite, raw
from fake_esplora import FakeEsplora, Till, open_till, say, tx_of
from forge import forge
from playground import children_of, is_alive, start_playground

from btcpay import http_client
from btcpay.check.report import Report
from btcpay.check.run import Checker
from btcpay.explorers.pool import Explorers
from btcpay.networks import NETWORKS
from btcpay.wallet.account import script_of
from storage.queries import keys, links


@pytest.fixture
def first() -> Iterator[FakeEsplora]:
    with FakeEsplora() as server:
        yield server


@pytest.fixture
def second() -> Iterator[FakeEsplora]:
    with FakeEsplora() as server:
        yield server


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[Till]:
    with open_till(tmp_path, ticker, clock) as opened:
        yield opened


def check(shop: Shop, *servers: FakeEsplora) -> Report:
    urls = [server.root for server in servers]
    explorers = Explorers(NETWORKS["regtest"], urls, http_client.new_session())
    service = shop.service
    checker = Checker(service.db, service.settings, explorers, service.prices, shop.clock)
    return checker.run()


def script_for(invoice: dict) -> bytes:
    return script_of(invoice["deposit_address"], "p2wpkh")


def status_of(shop: Shop, invoice: dict) -> str:
    return shop.get(f"/invoices/{invoice['id']}").json["status"]


def test_an_inactive_link_makes_no_invoice(shop: Shop) -> None:
    link = shop.link(amount_usd=5)
    shop.service.db.run(links.SET_STATUS, id=link["id"], status="inactive")
    assert shop.client.post(f"/link/{link['id']}").status_code == 410
    assert shop.get("/invoices").json["data"] == []


def test_money_from_before_the_invoice_does_not_pay_it(till: Till) -> None:
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    with raw(till.settings.database_url) as connection:
        connection.execute("UPDATE invoice SET created_at = created_at + 3 * 3600000")
    till.clock.move(hours=3)
    assert till.check().changed == {}
    (payment,) = till.payments()
    assert payment["invoice_id"] is None
    assert payment["amount_usd_at_receipt"] is None  # its block is more than an hour old


def test_an_explorer_that_is_behind_does_not_expire_what_another_saw_paid(
    shop: Shop, first: FakeEsplora, second: FakeEsplora
) -> None:
    invoice = shop.invoice(expires_in_hours=1)
    first.tip, second.tip = 1000, 900
    waiting = tx_of(1, script_for(invoice), invoice["amount_sats"])
    first.histories = {invoice["deposit_address"]: [waiting]}
    second.histories = {invoice["deposit_address"]: []}
    check(shop, first, second)
    shop.clock.move(hours=1)
    first.instead = lambda path: say("down", 503) if "address" in path else None
    run = check(shop, first, second)
    assert (run.failed, status_of(shop, invoice)) == ([invoice["id"]], "open")


def test_one_look_that_misses_waiting_money_does_not_expire_the_invoice(
    shop: Shop, first: FakeEsplora
) -> None:
    invoice = shop.invoice(expires_in_hours=1)
    waiting = tx_of(1, script_for(invoice), invoice["amount_sats"])
    first.histories = {invoice["deposit_address"]: [waiting]}
    check(shop, first)
    shop.clock.move(hours=1)
    first.histories = {invoice["deposit_address"]: []}
    check(shop, first)
    assert status_of(shop, invoice) == "open"
    first.histories = {invoice["deposit_address"]: [waiting]}
    check(shop, first)
    assert status_of(shop, invoice) == "open"  # it counts as in time, since we saw it in time


def test_the_amount_of_a_waiting_output_is_what_was_said_last(
    shop: Shop, first: FakeEsplora
) -> None:
    invoice = shop.invoice()
    address, script = invoice["deposit_address"], script_for(invoice)
    first.histories = {address: [tx_of(1, script, invoice["amount_sats"])]}
    check(shop, first)
    first.histories = {address: [tx_of(1, script, 1)]}
    check(shop, first)
    assert shop.get("/balance").json["total_sats"] == 1


def test_more_money_than_can_exist_is_not_believed(shop: Shop, first: FakeEsplora) -> None:
    invoice = shop.invoice()
    much = {"scriptpubkey": script_for(invoice).hex(), "value": 2_100_000_000_000_000}
    first.histories = {invoice["deposit_address"]: [tx_of(1, "", 0, vout=[much] * 9)]}
    assert check(shop, first).failed == [invoice["id"]]
    first.histories = {
        invoice["deposit_address"]: [tx_of(number, "", 0, vout=[much]) for number in (1, 2)]
    }
    assert check(shop, first).failed == [invoice["id"]]
    assert shop.get("/balance").json["total_sats"] == 0


def test_a_revoked_key_stays_revoked_when_the_clock_is_set_back(shop: Shop) -> None:
    secret = shop.issue("read")
    shop.service.db.run(keys.REVOKE, id=shop.key_ids[secret], at=0)
    shop.clock.move(hours=-1)
    assert shop.get("/balance", secret).status_code == 401


def test_a_page_past_its_deadline_offers_nothing_to_pay(shop: Shop) -> None:
    invoice = shop.invoice(expires_in_hours=1)
    page = f"/pay/{invoice['id']}"
    assert "Open in wallet" in shop.client.get(page).text
    shop.clock.at += timedelta(hours=1)
    text = shop.client.get(page).text
    assert "Open in wallet" not in text and "<svg" not in text and "it will be found" in text


def test_a_title_cannot_command_the_terminal(shop: Shop) -> None:
    shop.link(title="\x1b[2Jgone\nlnk_forged  active")
    listed = forge().run(shop.environ, ["link", "list"]).output
    assert "\x1b" not in listed and len(listed.splitlines()) == 2


@about_sqlite
def test_a_watching_check_survives_a_database_that_is_locked_for_long(
    shop: Shop, first: FakeEsplora
) -> None:
    invoice = shop.invoice(expires_in_hours=0.0001)
    first.histories = {invoice["deposit_address"]: []}
    path = shop.environ["BTCPAY_DATABASE_URL"].removeprefix("sqlite:///")
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    environ = clean_environ(**shop.environ | {"BTCPAY_EXPLORERS": first.root})
    watching = forge().start(environ, ["check", "--watch", "1"])
    try:
        assert any("database" in line for line in watching.stderr)
        lock.execute("ROLLBACK")
        threading.Thread(target=watching.stderr.read, daemon=True).start()
        until(lambda: status_of(shop, invoice) == "expired", "the watch to go on")
    finally:
        lock.close()
        watching.send_signal(signal.SIGTERM)
        assert watching.wait(20) == 0


@about_sqlite
def test_processes_that_make_a_database_together_make_one(
    tmp_path: Path, ticker: TickerServer
) -> None:
    environ = clean_environ(BTCPAY_DATABASE_URL=f"sqlite:///{tmp_path}/new/btcpay.db")
    started = [forge().start(environ, ["migrate", "--json"]) for _ in range(4)]
    told = [json.loads(child.communicate(timeout=60)[0]) for child in started]
    assert [child.returncode for child in started] == [0] * 4
    assert sorted(one["new"] for one in told) == [False, False, False, True]
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_the_sandbox_takes_its_processes_with_it_even_when_it_is_killed(tmp_path: Path) -> None:
    playground = start_playground(tmp_path)
    family = children_of(playground.process.pid)
    assert len(family) >= 3
    playground.stop(signal.SIGKILL)
    until(lambda: not any(map(is_alive, family)), "the children to end")
