"""Blocks are read in any order, each once, by several runs, within time and calls."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut
from btcpay.check import block_reader
from btcpay.check.block_reader import BlockReader
from btcpay.check.report import Report
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.wallet import double_spends
from storage.database import open_database
from storage.queries import blocks
from tests.support.accounts import Sweeper
from tests.support.builders import at_once, dump, is_summed
from tests.support.fake_esplora import say
from tests.support.rival import Rival

pytestmark = pytest.mark.both_databases


def unread(till):
    return till.shop.service.db.get(blocks.UNREAD)[0]


def raws(till):
    """The heights of the blocks that were asked for."""
    heights = till.sandbox.chain.ledger.heights
    return [
        heights[path.split("/")[2]] for path in till.liar.asked if path.endswith("/raw")
    ]


def test_the_newest_block_is_read_first_and_then_the_oldest(till):
    invoice = till.shop.invoice()
    till.mine(30)
    till.pay_in_block(invoice)
    top = till.sandbox.chain.ledger.height
    till.liar.asked.clear()
    report = till.check()
    assert report.complete and report.new_statuses == {invoice["id"]: "paid"}
    assert raws(till) == [top, *range(top - 30, top)]


def test_a_newest_block_that_nobody_has_keeps_no_other_from_being_read(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine(20)
    newest = till.sandbox.chain.ledger.tip.hash
    till.liar.lies = {f"/block/{newest}/raw": lambda _: say("later", 404)}
    report = till.check()
    assert (report.blocks_read, report.blocks_behind, report.complete) == (19, 1, False)
    assert report.new_statuses == {invoice["id"]: "paid"}


def gone(till, *heights):
    """Nobody has the blocks of these heights."""
    hashes = "|".join(till.sandbox.chain.ledger.hashes[height] for height in heights)
    till.liar.lies = {f"/block/({hashes})/raw": lambda _: say("no", 404)}


@pytest.mark.parametrize("count", [3, 7])
def test_blocks_that_nobody_has_keep_no_later_ones_from_being_read(till, count):
    """Neither in this run nor while they are passed over, which costs no call."""
    first = till.sandbox.chain.ledger.height + 1
    invoice = till.shop.invoice()
    till.mine(count)
    till.pay(invoice)
    till.mine(30)
    gone(till, *range(first, first + count))
    till.clock.move(hours=2)
    assert till.check().new_statuses == {invoice["id"]: "paid"}
    assert unread(till) == count
    till.clock.move(minutes=5)
    while till.check().chain_failed:
        pass
    till.liar.asked.clear()
    report = till.check()
    assert raws(till) == [] and report.blocks_behind == count and not report.complete


def fail_twice(till):
    """After the first time a block is asked for again in a minute."""
    for _ in range(2):
        assert till.check().blocks_behind == 1
        till.clock.move(minutes=1)
    till.clock.move(minutes=-1)


@pytest.mark.parametrize(("age", "waits"), [(8, 0), (11, 12), (40, 41), (80, 60)])
def test_a_block_is_passed_over_for_as_long_as_it_is_old_but_not_a_new_one(
    till, age, waits
):
    """In minutes: explorers that were away for a moment do not make a payment wait for an hour."""
    invoice = till.pay_in_block()
    gone(till, till.sandbox.chain.ledger.height)
    till.clock.move(minutes=age)
    fail_twice(till)
    till.liar.lies.clear()
    if waits:
        till.clock.move(minutes=waits, seconds=-30)
        assert till.check().blocks_behind == 1
        till.clock.move(seconds=31)
    assert till.check().new_statuses == {invoice["id"]: "paid"}


def swept_in_gap(till, sweeper, before, between, after):
    """An invoice paid and its coin moved, so many blocks apart; and the height of the payment."""
    invoice = sweeper.invoice()
    till.mine(before)
    txid = till.pay(invoice)
    till.mine()
    paid_in = till.sandbox.chain.ledger.height
    till.mine(between) if between else None
    sweeper.sweep(invoice, txid)
    till.mine(1 + after)
    return invoice, paid_in


@pytest.mark.parametrize("between", [0, 1, 9])
def test_a_spend_is_found_whose_block_was_read_before_the_coin_was_known(till, between):
    invoice, paid_in = swept_in_gap(till, Sweeper(till), 10, between, 0)
    spent_in = paid_in + 1 + between
    till.liar.asked.clear()
    report = till.check()
    assert report.complete and report.new_statuses[invoice["id"]] == "paid"
    assert raws(till)[0] == spent_in and raws(till).count(spent_in) == 2
    assert till.balance() == (0, 0)
    kept = till.shop.sql(
        "SELECT COUNT(*) FROM block WHERE spends IS NOT NULL"
    ).fetchone()
    assert tuple(kept) == (0,)


@pytest.mark.parametrize("seed", range(6))
def test_any_order_leads_to_the_same(till, seed):
    sweeper = Sweeper(till, keep_shop=True)
    _, paid_in = swept_in_gap(till, sweeper, 3, 4, 3)
    other = till.shop.invoice()
    till.pay(other, 10_000)
    till.mine()
    till.pay(other, other["amount_sats"] - 10_000)
    till.mine()
    db = till.shop.service.db
    follow_only(till)
    heights = list(range(paid_in - 2, till.sandbox.chain.ledger.height + 1))
    random.Random(seed).shuffle(heights)
    for height in heights:
        reader_of(till)._read(db.get(blocks.AT, height=height), Report())
    assert till.check().complete and unread(till) == 0
    assert till.balance() == (other["amount_sats"],) * 2 and is_summed(till.shop)
    assert till.look(other)["status"] == "paid" and sweeper.total_sats == 0


def follow_only(till):
    """Takes over the headers; no block can be had."""
    till.liar.instead = lambda path: (
        say("later", 404) if path.endswith("/raw") else None
    )
    assert not till.check().complete
    till.liar.instead = lambda _: None


@dataclass
class AskedBetween:
    """A price that something happens before: after a block was looked into, before it is kept."""

    happens: Callable[[], Any]

    def rate_for(self, _):
        return self

    def start_refresh(self):
        pass

    def current_price_or_none(self):
        happens = self.happens
        self.happens = lambda: None
        happens()
        return Decimal(60_000)


def reader_of(till, happens=lambda: None):
    prices: Any = AskedBetween(happens)
    db = till.shop.service.db
    return BlockReader(db, till.settings, till.explorers(), prices, till.clock)


def test_a_spend_is_found_whose_coin_another_run_learned_of_meanwhile(till):
    """It is looked into before the other run has kept the payment, and kept afterwards."""
    sweeper = Sweeper(till, keep_shop=True)
    db = till.shop.service.db
    invoice = sweeper.invoice()
    other = till.shop.invoice()
    txid = till.pay(invoice)
    till.mine()
    sweeper.sweep(invoice, txid)
    till.pay(other)  # so that a price is asked for
    till.mine()
    follow_only(till)
    top = till.sandbox.chain.ledger.height
    paying, spending = (db.get(blocks.AT, height=height) for height in (top - 1, top))
    reader = reader_of(till, lambda: reader_of(till)._read(paying, Report()))
    reader._read(spending, Report())
    assert till.check().complete and unread(till) == 0
    assert sweeper.total_sats == 0


def test_a_block_that_leaves_the_chain_while_it_is_read_is_not_kept(till):
    invoice = till.pay_in_block()
    follow_only(till)
    row = till.shop.service.db.get(blocks.TOP)

    def reorganise():
        chain = till.sandbox.chain
        chain.reorganise(1, till.now, double_spends(till.sandbox.wallet, 1))
        till.check()

    report = Report()
    reader_of(till, reorganise)._read(row, report)
    assert (
        report.blocks_read == 0 and report.new_statuses == {} and till.payments() == []
    )
    assert till.look(invoice)["status"] == "open" and till.balance() == (0, 0)


def test_two_runs_at_once_read_each_block_once_and_settle_once(till):
    sweeper = Sweeper(till, keep_shop=True)
    invoices = [till.shop.invoice() for _ in range(6)]
    swept = sweeper.invoice()
    moved = till.pay(swept)
    for invoice in invoices:
        till.pay(invoice)
        till.mine(2)
    sweeper.sweep(swept, moved)
    till.mine(4)

    def run(_):
        db = open_database(till.settings.database_url)
        with db.borrow_connection():
            report = till.checker(db, till.explorers(db=db)).run()
        db.close()
        return report.blocks_read

    assert sum(at_once(2, run)) == 16
    assert till.check().complete and unread(till) == 0
    assert len(till.payments()) == 6 and is_summed(till.shop)
    for invoice in invoices:
        assert (
            till.kinds(invoice).count("payment")
            == 1
            == till.kinds(invoice).count("paid")
        )
    assert sweeper.total_sats == 0


def test_nothing_expires_while_blocks_are_unread(till, monkeypatch):
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(hours=2)
    till.mine(3)
    with monkeypatch.context() as patch:
        patch.setattr(block_reader, "MOST_S", -1)
        report = till.check()
    assert (
        report.blocks_behind == 3
        and report.looked_at == 0
        and report.new_statuses == {}
    )
    assert till.check().new_statuses == {invoice["id"]: "expired"}


def test_the_hours_calls_end_a_run_and_the_next_hour_goes_on(lied_to):
    till = lied_to(BLOCKTILL_EXPLORER_CALLS_PER_HOUR="60")
    invoice = till.shop.invoice()
    assert till.check().complete
    till.clock.move(hours=2)
    till.pay(invoice)
    till.mine(100)
    read_in = []
    while unread(till) or len(read_in) < 2:
        till.liar.asked.clear()
        report = till.check()
        assert len(till.liar.asked) <= 60
        read_in.append(report.blocks_read)
        till.clock.move(hours=1, minutes=2)
        assert len(read_in) < 12
    assert sum(read_in) == 100 and till.check().complete
    assert till.look(invoice)["status"] == "paid"


def test_while_a_pause_is_made_up_for_new_customers_are_seen_within_five_minutes(
    lied_to,
):
    till = lied_to(BLOCKTILL_EXPLORER_CALLS_PER_HOUR="240")
    till.confirm(till.shop.invoice())
    till.clock.move(days=2)
    till.mine(250)
    for _ in range(4):
        invoice = till.shop.invoice()
        till.open_page(invoice)
        till.pay(invoice)
        reports = [till.check() for _ in range(5) if till.clock.move(minutes=1) is None]
        assert till.kinds(invoice) == ["seen"]
    left = unread(till)
    assert (
        left > 50
        and reports[-1].blocks_behind == left
        and reports[-1].hours_behind == 1
    )
    till.mine_and_check()
    assert till.look(invoice)["status"] == "paid" and unread(till) == left


@pytest.mark.parametrize("sats", [2_100_000_000_000_001, 2**63, 2**64 - 1])
def test_a_block_that_pays_more_than_there_is_is_refused_and_told(till, sats, caplog):
    invoice = till.shop.invoice()
    before = dump(till.shop)["output"]
    origin = TxIn(Outpoint("ff" * 32, 0), b"", 0xFFFFFFFF)
    tx = Tx(2, (origin,), (TxOut(sats, script_of(invoice["deposit_address"])),), 0)
    till.liar.instead = Rival(till).add(1, [tx])
    report = till.check()
    assert report.chain_failed and dump(till.shop)["output"] == before
    assert "pays more than there is" in caplog.text
