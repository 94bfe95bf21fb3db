"""What an adversarial review tried: each of these once lost, invented or blocked something."""

import json
import signal
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from builders import Shop, TickerServer, clean_environ, until
from databases import about_sqlite, raw
from fake_esplora import Liar, LiedTo, Till, say, tx_of
from forge import forge
from playground import children_of, is_alive, start_playground

from btcpay.chain.explorers.pool import Explorers
from btcpay.http import http_client
from btcpay.merchants.account import script_of
from storage.queries import keys, links

Lies = Callable[..., LiedTo]


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
    till.check()
    till.pay(invoice)
    till.mine()
    with raw(till.settings.database_url) as connection:
        connection.execute("UPDATE invoice SET created_at = created_at + 3 * 3600000")
    till.clock.move(hours=3)
    assert till.check().changed == {}
    (payment,) = till.payments()
    assert payment["invoice_id"] is None
    assert payment["amount_usd_at_receipt"] is None  # its block is more than an hour old


def test_an_explorer_that_is_behind_does_not_expire_what_another_saw_paid(lied_to: Lies) -> None:
    """The mempool of one that stands still shows nothing that has come since."""
    till = lied_to()
    invoice = till.shop.invoice(expires_in_hours=1)
    till.mine(3)
    till.pay(invoice)
    till.look_for(invoice)
    till.clock.move(hours=1)
    till.liar.lies = {"/address/": lambda _: say("down", 503)}
    with Liar(till.liar.honest) as behind:
        old = till.sandbox.chain.ledger.height - 3
        behind.lies = {"/blocks/tip/height": lambda _: str(old), "/address/": lambda _: []}
        for _ in range(2):
            session, roots = http_client.Session(), [till.liar.root, behind.root]
            explorers = Explorers(till.settings.network, roots, session, pause=lambda _: None)
            assert till.checker(explorers=explorers).run().failed == [invoice["id"]]
            till.clock.move(minutes=1)
        assert behind.count("/address/") == 0
    assert till.look(invoice)["status"] == "open" and till.kinds(invoice) == ["seen"]


def test_an_explorer_two_blocks_behind_may_still_be_asked(lied_to: Lies) -> None:
    till = lied_to()
    invoice = till.shop.invoice()
    till.mine(4)
    till.check()
    till.pay(invoice)
    for blocks, looked in ((2, 1), (3, 0)):
        hash = till.sandbox.chain.ledger.hashes[-1 - blocks]
        till.liar.lies = {"/blocks/tip/hash": lambda _, hash=hash: hash}
        assert till.look_for(invoice).looked == looked


@pytest.mark.parametrize("network", ["regtest", "an hour's patience"])
def test_one_look_that_misses_waiting_money_does_not_expire_the_invoice(
    lied_to: Lies, network: str
) -> None:
    """On regtest a second one does, anywhere else only after an hour."""
    till = lied_to()
    if network != "regtest":
        patient = replace(till.settings.network, gone_after=timedelta(hours=1))
        till.shop.service = replace(
            till.shop.service, settings=replace(till.settings, network=patient)
        )
    invoice = till.shop.invoice(expires_in_hours=1)
    till.pay(invoice)
    till.look_for(invoice)
    till.clock.move(hours=1)
    till.liar.lies = {"/txs/mempool": lambda _: []}
    till.check()
    assert till.look(invoice)["status"] == "open"
    till.liar.lies = {}
    till.look_for(invoice)
    assert till.look(invoice)["status"] == "open"  # it counts as in time, since we saw it in time
    till.liar.lies = {"/txs/mempool": lambda _: []}
    till.look_for(invoice)
    till.clock.move(minutes=59)
    till.check()
    assert till.look(invoice)["status"] == ("expired" if network == "regtest" else "open")
    till.clock.move(minutes=1)
    till.check()
    assert till.look(invoice)["status"] == "expired"


def test_the_amount_of_a_waiting_output_is_what_was_said_last(lied_to: Lies) -> None:
    till = lied_to()
    invoice = till.shop.invoice()
    for sats in (invoice["amount_sats"], 1):
        waiting = tx_of(1, script_for(invoice), sats)
        till.liar.lies = {"/txs/mempool": lambda _, waiting=waiting: [waiting]}
        till.look_for(invoice)
    assert till.balance() == (0, 1)


def test_more_money_than_can_exist_is_not_believed(lied_to: Lies) -> None:
    till = lied_to()
    one, two = till.shop.invoice(), till.shop.invoice()
    most = 2_100_000_000_000_000

    def shown(*txs: dict) -> None:
        till.liar.lies = {f"{one['deposit_address']}/txs/mempool": lambda _: list(txs)}

    much = {"scriptpubkey": script_for(one).hex(), "value": most}
    shown(tx_of(1, "", 0, vout=[much] * 9))
    assert till.look_for(one).failed == [one["id"]]
    shown(tx_of(1, "", 0, vout=[much]), tx_of(2, "", 0, vout=[much]))
    assert till.look_for(one).failed == [one["id"]]
    assert till.balance() == (0, 0)
    # As much as there is, and then a satoshi of another invoice.
    shown(tx_of(1, "", 0, vout=[much]))
    assert till.look_for(one).failed == []
    till.liar.lies |= {f"{two['deposit_address']}/txs/mempool": lambda _: [satoshi]}
    satoshi = tx_of(3, script_for(two), 1)
    assert till.look_for(two).failed == [two["id"]]
    # What a block proves is never refused for that.
    till.pay(two)
    till.mine()
    assert till.check().changed == {two["id"]: "paid"}


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
    assert "Open in wallet" not in text and 'id="qr"' not in text and "it will be found" in text


def test_a_title_cannot_command_the_terminal(shop: Shop) -> None:
    shop.link(title="\x1b[2Jgone\nlnk_forged  active")
    listed = forge().run(shop.environ, ["link", "list"]).output
    assert "\x1b" not in listed and len(listed.splitlines()) == 2


@about_sqlite
def test_a_watching_check_survives_a_database_that_is_locked_for_long(till: Till) -> None:
    invoice = till.shop.invoice(expires_in_hours=0.0001)
    shop = till.shop
    path = shop.environ["BTCPAY_DATABASE_URL"].removeprefix("sqlite:///")
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    environ = clean_environ(**shop.environ)
    watching = forge().start(environ, ["check", "--watch", "1"])
    try:
        assert any("database" in line for line in watching.stderr)
        lock.execute("ROLLBACK")
        threading.Thread(target=watching.stderr.read, daemon=True).start()
        # A key may ask 120 times a minute.
        until(lambda: status_of(shop, invoice) == "expired", "the watch to go on", every_s=0.2)
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
