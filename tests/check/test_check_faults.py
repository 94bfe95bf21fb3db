"""The check when something else goes wrong: explorers, other checks, coins that have moved."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import Clock, TickerServer, dump, open_shop
from databases import ON_POSTGRES
from fake_esplora import FakeEsplora, Reply, Till, dropped, open_till, say, truncated, tx_of
from sweeper import Sweeper

from btcpay import http_client
from btcpay.explorers.pool import Explorers, History
from btcpay.networks import NETWORKS
from btcpay.wallet.account import script_of
from storage.database import open_database


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[Till]:
    with open_till(tmp_path, ticker, clock) as opened:
        yield opened


@pytest.fixture
def esplora() -> Iterator[FakeEsplora]:
    with FakeEsplora() as server:
        yield server


@pytest.fixture
def faked(tmp_path, ticker, clock, esplora) -> Iterator[Till]:
    """A shop before the scriptable explorer, which knows every address of it as empty."""
    ticker.reset()
    with open_shop(tmp_path, ticker.url, clock, BTCPAY_EXPLORERS=esplora.root) as shop:
        yield Till(shop, None, clock)


def script_for(invoice: dict[str, Any]) -> bytes:
    return script_of(invoice["deposit_address"], "p2wpkh")


def test_the_same_check_again_and_again_changes_nothing(till):
    paid, part, late, waiting, canceled = (
        till.shop.invoice(**fields) for fields in ({}, {}, {"expires_in_hours": 1}, {}, {})
    )
    till.pay(paid), till.pay(part, 1_000)
    till.mine()
    till.clock.move(hours=2)
    till.pay(late), till.pay(paid), till.pay(canceled)
    till.mine()
    till.pay(waiting)
    till.check()
    before = dump(till.shop)
    assert len(before["payment"]) == 5 and len(before["output"]) == 6
    for _ in range(20):
        till.clock.move(seconds=2)
        assert till.check().changed == {}
    assert dump(till.shop) == before


class Meeting(Explorers):
    """Answers only when another check has its answer too, so that both decide on the same facts."""

    def __init__(self, root: str, barrier: threading.Barrier) -> None:
        super().__init__(NETWORKS["regtest"], [root], http_client.new_session())
        self._barrier = barrier

    def history(self, address: str, script: bytes) -> History:
        history = super().history(address, script)
        self._barrier.wait(10)
        return history


@pytest.mark.parametrize("checks", [2, 4])
def test_checks_that_see_the_same_money_at_the_same_time_make_one_payment(till, checks):
    invoices = [till.shop.invoice() for _ in range(5)]
    for invoice in invoices:
        till.pay(invoice)
    till.mine()
    ids, barrier = till.watched(), threading.Barrier(checks)
    runs = []

    def check() -> None:
        db = open_database(till.settings.database_url)
        explorers = Meeting(till.settings.explorers[0], barrier)
        runs.append(till.checker(db, explorers, in_flight=1).run(ids))
        db.close()

    threads = [threading.Thread(target=check) for _ in range(checks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(run.scanned, run.failed) for run in runs] == [(5, [])] * checks
    changed = [invoice_id for run in runs for invoice_id in run.changed]
    assert sorted(changed) == sorted(invoice["id"] for invoice in invoices)
    assert sorted(p["invoice_id"] for p in till.payments()) == sorted(changed)
    assert till.kinds(invoices[0]) == ["seen", "payment", "paid"]


def test_while_the_explorer_is_down_nothing_expires_and_every_address_is_reported(till):
    ending, paid = till.shop.invoice(expires_in_hours=1), till.shop.invoice()
    till.clock.move(hours=2)
    till.pay(paid)
    till.mine()
    till.sandbox.switches.explorer_up = False
    run = till.check()
    assert sorted(run.failed) == sorted([ending["id"], paid["id"]])
    assert (run.scanned, run.changed, run.complete) == (0, {}, False)
    assert till.look(ending)["status"] == till.look(paid)["status"] == "open"
    till.sandbox.switches.explorer_up = True
    assert till.check().changed == {ending["id"]: "expired", paid["id"]: "paid"}


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(say("oops", 500), id="500"),
        pytest.param(say("not found", 404), id="404"),
        pytest.param(say("<html>"), id="HTML"),
        pytest.param(say([{"txid": 1}]), id="another schema"),
        pytest.param(say([tx_of(1, b"", sats=-5)]), id="a negative amount"),
        pytest.param(truncated(b"[]"), id="half an answer"),
        pytest.param(dropped, id="a closed connection"),
    ],
)
def test_garbage_for_one_address_does_not_stop_the_run(faked, esplora, reply: Reply):
    bad, good, ending = faked.shop.invoice(), faked.shop.invoice(), None
    ending = faked.shop.invoice(expires_in_hours=1)
    faked.clock.move(hours=2)
    address = bad["deposit_address"]
    esplora.instead = lambda path: reply if address in path else None
    esplora.histories = {
        good["deposit_address"]: [esplora.mine(script_for(good), good["amount_sats"])],
        ending["deposit_address"]: [],
    }
    run = faked.check()
    assert (run.failed, run.scanned) == ([bad["id"]], 2)
    assert run.changed == {good["id"]: "paid", ending["id"]: "expired"}
    assert faked.look(bad)["status"] == "open"


def test_an_answer_that_cannot_be_stored_does_not_stop_the_run(faked, esplora):
    one, two = faked.shop.invoice(), faked.shop.invoice()
    when = f"WHEN (NEW.invoice_id = '{one['id']}')"
    if ON_POSTGRES:
        body = "BEGIN RAISE 'no room'; END"
        faked.shop.sql(f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $${body}$$")
        then = f"FOR EACH ROW {when} EXECUTE FUNCTION fail()"
    else:
        then = f"{when} BEGIN SELECT RAISE(ABORT, 'no room'); END"
    faked.shop.sql(f"CREATE TRIGGER broken BEFORE INSERT ON output {then}")
    esplora.histories = {
        one["deposit_address"]: [esplora.mine(script_for(one), one["amount_sats"])],
        two["deposit_address"]: [esplora.mine(script_for(two), two["amount_sats"], 999)],
    }
    run = faked.check()
    assert (run.failed, run.changed) == ([one["id"]], {two["id"]: "paid"})
    assert faked.look(one)["status"] == "open" and len(faked.payments()) == 1


def test_an_output_once_shown_at_a_wrong_address_is_found_at_the_right_one(faked, esplora):
    wrong, right = faked.shop.invoice(), faked.shop.invoice()
    tx = esplora.mine(script_for(right), right["amount_sats"])
    lie = tx | {"vout": [{"scriptpubkey": script_for(wrong).hex(), "value": 5}]}
    lie |= {"status": {"confirmed": False}}
    esplora.histories = {wrong["deposit_address"]: [lie], right["deposit_address"]: []}
    faked.check()
    esplora.histories = {wrong["deposit_address"]: [], right["deposit_address"]: [tx]}
    run = faked.check()
    assert (run.failed, run.changed) == ([], {right["id"]: "paid"})
    assert faked.balance() == (right["amount_sats"], right["amount_sats"])


def test_an_empty_answer_does_not_undo_a_payment(faked, esplora):
    invoice = faked.shop.invoice(expires_in_hours=1)
    tx = esplora.mine(script_for(invoice), invoice["amount_sats"])
    esplora.histories = {invoice["deposit_address"]: [tx]}
    faked.check()
    esplora.histories = {invoice["deposit_address"]: []}
    faked.clock.move(hours=2)
    assert faked.check().changed == {}
    assert faked.look(invoice)["status"] == "paid" and len(faked.payments(invoice)) == 1


def test_money_that_was_confirmed_and_is_not_shown_is_neither_counted_nor_forgotten(
    tmp_path, ticker, clock, esplora
):
    two = {"BTCPAY_EXPLORERS": esplora.root, "BTCPAY_CONFIRMATIONS": "2"}
    ticker.reset()
    with open_shop(tmp_path, ticker.url, clock, **two) as shop:
        till = Till(shop, None, clock)
        invoice = shop.invoice(expires_in_hours=1)
        tx = esplora.mine(script_for(invoice), invoice["amount_sats"])
        esplora.histories = {invoice["deposit_address"]: [tx]}
        till.check()
        esplora.histories, esplora.tip = {invoice["deposit_address"]: []}, 1001
        clock.move(hours=2)
        assert till.check().changed == {}
        assert till.look(invoice)["status"] == "open" and till.payments() == []
        esplora.histories = {invoice["deposit_address"]: [tx]}
        assert till.check().changed == {invoice["id"]: "paid"}


def test_the_page_does_not_say_paid_before_the_invoice_is(tmp_path, ticker, clock, esplora):
    two = {"BTCPAY_EXPLORERS": esplora.root, "BTCPAY_CONFIRMATIONS": "2"}
    ticker.reset()
    with open_shop(tmp_path, ticker.url, clock, **two) as shop:
        till = Till(shop, None, clock)
        invoice = shop.invoice()
        tx = esplora.mine(script_for(invoice), invoice["amount_sats"])
        esplora.histories = {invoice["deposit_address"]: [tx]}
        till.check()
        # The chain grows, and the address itself cannot be asked: who knows what became of it?
        esplora.tip, esplora.histories = 1001, {}
        assert till.check().failed == [invoice["id"]]
        assert till.look(invoice)["status"] == "open" and till.payments() == []
        assert shop.client.get(f"/pay/{invoice['id']}/status").json["status"] == "open"
        assert "Paid" not in shop.client.get(f"/pay/{invoice['id']}").text


def test_a_reorganisation_before_the_payment_counts_just_waits_again(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.check()
    till.mine()
    till.sandbox.chain.reorganise(1, till.now)
    assert till.check().changed == {}
    assert till.balance() == (0, invoice["amount_sats"])
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}


def test_an_invoice_whose_coin_was_swept_before_the_first_look_is_paid(till):
    sweeper = Sweeper(till)
    invoice = sweeper.invoice()
    txid = till.pay(invoice)
    till.mine()
    sweeper.sweep(invoice, txid)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert [p["amount_sats"] for p in till.payments(invoice)] == [invoice["amount_sats"]]
    assert till.balance() == (0, 0)


def test_a_swept_coin_leaves_the_balance_when_its_spending_confirms(till):
    sweeper = Sweeper(till)
    invoice = sweeper.invoice()
    txid = till.pay(invoice)
    till.check()
    assert till.balance() == (0, invoice["amount_sats"])
    till.mine()
    till.check()
    assert till.balance() == (invoice["amount_sats"],) * 2
    sweeper.sweep(invoice, txid)
    till.check()
    assert till.balance() == (invoice["amount_sats"],) * 2
    till.mine()
    till.check()
    assert till.balance() == (0, 0)
    assert till.look(invoice)["status"] == "paid" and "spent" in till.kinds(invoice)


def test_a_sweep_that_a_reorganisation_undoes_is_in_the_balance_again(till):
    sweeper = Sweeper(till)
    invoice = sweeper.invoice()
    txid = till.pay(invoice)
    till.mine()
    sweeper.sweep(invoice, txid)
    till.mine()
    till.check()
    till.sandbox.chain.reorganise(1, till.now)
    till.check()
    assert till.balance() == (invoice["amount_sats"],) * 2
