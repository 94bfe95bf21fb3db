"""BTCPAY_BLOCKS=named: only blocks that histories and outspends name, with the same facts."""

from collections.abc import Callable
from secrets import token_hex
from typing import Any

import pytest
from asking import check_with, raws
from builders import dump
from fake_esplora import Json, LiedTo, Till, say
from sweeper import Sweeper

from btcpay.check.report import Report
from btcpay.sandbox.payer.misbehave import double_spends, replace
from storage.queries import blocks, payments

Lies = Callable[..., LiedTo]


@pytest.fixture
def till(lied_to: Lies) -> LiedTo:
    opened = lied_to(BTCPAY_BLOCKS="named")
    opened.shop.invoice()
    assert opened.check().complete
    return opened


def later(till: LiedTo, minutes: int = 11) -> Report:
    """A run after every history and coin may be asked for again."""
    till.clock.move(minutes=minutes)
    return till.check()


def facts(till: Till) -> dict[str, Any]:
    """What was found on the chain."""
    found = dump(till.shop)
    return {name: found[name] for name in ("output", "payment", "proof", "balance", "event")}


def test_only_blocks_that_an_address_is_in_are_read(till):
    invoice = till.shop.invoice()
    till.mine(5)
    till.pay(invoice)
    till.mine()
    paid_in = till.sandbox.chain.ledger.height
    till.mine(5)
    till.liar.asked.clear()
    report = later(till)
    assert report.complete and report.changed == {invoice["id"]: "paid"}
    assert raws(till) == [paid_in] and report.blocks == 1


def test_nothing_is_read_while_nothing_comes(till):
    till.mine(40)
    till.liar.asked.clear()
    assert later(till).complete and raws(till) == []


def test_the_facts_are_those_of_every_block(till):
    """Whoever reads the rest afterwards finds nothing new, and nothing else."""
    sweeper = Sweeper(till, keep_shop=True)
    swept, short, twice = sweeper.invoice(), till.shop.invoice(), till.shop.invoice()
    moved = till.pay(swept)
    till.pay(short, 10_000)
    till.mine(2)
    till.pay(twice)
    till.mine()
    till.pay(twice, 7_000)
    till.mine(3)
    later(till)
    sweeper.sweep(swept, moved)
    till.mine(2)
    later(till), later(till)
    named = facts(till)
    assert sweeper.total_sats == 0
    assert till.balance() == (twice["amount_sats"] + 17_000,) * 2
    till.shop.sql("UPDATE block SET read_at = NULL, named = 0 WHERE height > 189")
    report = check_with(till, till.liar.root, blocks="all")
    assert report.complete and report.blocks > 10
    assert facts(till) == named


def test_an_invoice_expires_after_its_history_was_asked_after_the_deadline(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    later(till, 58)
    till.clock.move(minutes=3)
    till.liar.asked.clear()
    path = f"/address/{invoice['deposit_address']}/txs"
    assert till.check().changed == {} and path not in till.liar.asked  # asked three minutes ago
    till.clock.move(minutes=8)
    assert till.check().changed == {invoice["id"]: "expired"} and path in till.liar.asked


def test_a_payment_of_the_last_minute_is_found_before_an_end(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    later(till, 58)
    till.pay(invoice)
    till.mine()
    till.clock.move(minutes=5)
    assert till.check().changed == {}
    assert later(till).changed == {invoice["id"]: "paid"}


def test_a_history_that_names_a_block_to_come_ends_nothing(till):
    """A block came between the header and the history: its payment may be in time."""
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(minutes=59)
    till.pay(invoice)
    till.mine()
    till.clock.move(minutes=2)
    below = till.sandbox.chain.ledger.hashes[-2]
    till.liar.lies = {
        "^/blocks/tip/hash$": lambda _: below,
        "/txs/mempool$": lambda _: [],
    }
    assert till.check().changed == {} and till.check().changed == {}
    till.liar.lies = {}
    assert till.check().changed == {invoice["id"]: "paid"}


@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_history_that_cannot_be_had_ends_nothing_and_holds_nobody_up(till, status):
    refused, invoice, ends = (till.shop.invoice(expires_in_hours=1) for _ in range(3))
    till.pay(invoice)
    till.mine()
    till.clock.move(minutes=61)
    path = f"/address/{refused['deposit_address']}/txs"
    till.liar.instead = lambda asked: say("no", status) if asked == path else None
    report = till.check()
    assert report.changed == {invoice["id"]: "paid", ends["id"]: "expired"}
    assert refused["id"] in report.failed and not report.complete
    assert till.look(refused)["status"] == "open"
    till.liar.instead = lambda _: None
    assert later(till).changed == {refused["id"]: "expired"}


def test_money_that_the_mempool_does_not_show_any_more_is_looked_for_at_once(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    assert till.checker().run([invoice["id"]]).looked == 1
    till.mine()
    report = till.checker().run([invoice["id"]])
    assert report.complete and report.changed == {invoice["id"]: "paid"}
    assert "vanished" not in till.kinds(invoice)


def test_money_is_not_missed_whose_history_cannot_be_had(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.checker().run([invoice["id"]])
    till.mine()
    till.clock.move(minutes=1)
    path = f"/address/{invoice['deposit_address']}/txs"
    till.liar.instead = lambda asked: say("no", 400) if asked == path else None
    report = till.checker().run([invoice["id"]])
    assert not report.complete and till.kinds(invoice) == ["seen"]


def test_a_replaced_payment_is_history(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.checker().run([invoice["id"]])
    replace(till.sandbox.wallet, till.now, away=True)
    till.mine()
    till.checker().run([invoice["id"]])
    assert till.kinds(invoice) == ["seen", "vanished"] and till.balance() == (0, 0)


# Spends.


def swept(till: LiedTo, blocks_between: int = 1) -> tuple[Sweeper, Json, str]:
    """A paid invoice whose coin is known."""
    sweeper = Sweeper(till, keep_shop=True)
    invoice = sweeper.invoice()
    txid = till.pay(invoice)
    till.mine(blocks_between)
    assert invoice["id"] in later(till).changed
    return sweeper, invoice, txid


def test_a_spend_is_found_where_an_outspend_names_it(till):
    sweeper, invoice, txid = swept(till)
    sweeper.sweep(invoice, txid)
    till.mine(3)
    till.shop.sql(
        "UPDATE invoice SET finished_at = 0 WHERE status = 'paid'"
    )  # no history is asked any more
    till.liar.asked.clear()
    assert later(till).complete and sweeper.total_sats == 0
    assert till.liar.count(f"^/tx/{txid}/outspend/0$") == 1 and len(raws(till)) == 1
    till.mine(2)
    till.liar.asked.clear()
    later(till)
    assert till.liar.count("/outspend/") == 0


def test_a_spend_that_waits_is_none(till):
    sweeper, invoice, txid = swept(till)
    sweeper.sweep(invoice, txid)
    assert later(till).complete
    assert sweeper.total_sats == invoice["amount_sats"]


def spent_before_it_is_known(till: LiedTo) -> tuple[Sweeper, Json]:
    """The block that spends was read for another invoice; the coin's own history fails."""
    sweeper = Sweeper(till, keep_shop=True)
    invoice, other = sweeper.invoice(), till.shop.invoice()
    txid = till.pay(invoice)
    till.mine()
    sweeper.sweep(invoice, txid)
    till.pay(other)
    till.mine()
    path = f"/address/{invoice['deposit_address']}/txs"
    till.liar.instead = lambda asked: say("not now", 404) if asked == path else None
    assert later(till).changed == {other["id"]: "paid"}
    return sweeper, invoice


def test_a_spend_in_a_block_that_was_read_before_its_coin_was_known_is_found(till):
    """The block was read for another invoice; the coin's own history came late."""
    sweeper, invoice = spent_before_it_is_known(till)
    till.liar.instead = lambda _: None
    assert later(till).changed == {invoice["id"]: "paid"}
    later(till)
    assert sweeper.total_sats == 0
    till.liar.asked.clear()
    later(till), later(till)
    assert raws(till) == []


def test_a_false_spend_in_a_block_that_was_read_costs_one_block_and_no_more(till):
    invoice, other = till.shop.invoice(), till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.pay(other)
    till.mine()
    till.clock.move(minutes=11)
    till.check()
    tip = till.sandbox.chain.ledger
    status = {"block_height": tip.height, "block_hash": tip.tip.hash, "block_time": till.now}
    lie = {"spent": True, "txid": "cd" * 32, "vin": 0, "status": {"confirmed": True} | status}
    till.liar.lies = {"/outspend/": lambda _: lie}
    till.liar.asked.clear()
    for _ in range(5):
        later(till)
    assert len(raws(till)) <= 1
    assert till.balance() == (invoice["amount_sats"] + other["amount_sats"],) * 2


# The chain.


@pytest.mark.parametrize("depth", [1, 4])
def test_a_reorganisation_undoes_what_named_blocks_paid(till, depth):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine(depth)
    assert later(till).changed == {invoice["id"]: "paid"}
    chain = till.sandbox.chain
    chain.reorganise(depth, till.now, double_spends(till.sandbox.wallet, depth))
    later(till)
    assert till.look(invoice)["status"] == "open" and till.balance() == (0, 0)
    till.pay(invoice)
    till.mine()
    assert later(till).changed == {invoice["id"]: "paid"}


def test_a_payment_that_moves_to_another_block_is_found_there(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    later(till)
    till.sandbox.chain.reorganise(1, till.now)
    till.mine()
    later(till), later(till)
    assert till.look(invoice)["status"] == "paid"
    (output,) = till.shop.service.db.rows(payments.OUTPUTS, invoice_id=invoice["id"])
    assert output["block_hash"] == till.sandbox.chain.ledger.tip.hash


def test_a_named_block_that_nobody_has_holds_back_every_end(till):
    invoice, ends = till.shop.invoice(), till.shop.invoice(expires_in_hours=1)
    till.pay(invoice)
    till.mine()
    till.clock.move(minutes=61)
    till.liar.instead = lambda path: say("no", 404) if path.endswith("/raw") else None
    report = till.check()
    assert not report.complete and report.behind == 1 and report.changed == {}
    till.liar.instead = lambda _: None
    assert later(till).changed == {invoice["id"]: "paid", ends["id"]: "expired"}


def test_whoever_turns_to_all_reads_the_blocks_that_were_left_out(till):
    till.mine(7)
    assert later(till).blocks == 0
    report = check_with(till, till.liar.root, blocks="all")
    assert report.blocks >= 7 and till.shop.service.db.only(blocks.UNREAD)["all"] == 0


def test_a_spend_is_found_by_whoever_turned_to_all_before_its_coin_was_known(till):
    """The spend's block was read alone, as a named one."""
    sweeper, invoice = spent_before_it_is_known(till)
    report = check_with(till, till.liar.root, blocks="all")
    assert report.complete and report.changed == {invoice["id"]: "paid"}
    assert sweeper.total_sats == 0
    kept = till.shop.sql("SELECT COUNT(*) FROM block WHERE spends IS NOT NULL").fetchone()
    assert tuple(kept) == (0,)


def test_hints_take_a_third_of_the_calls_that_are_left_however_long_histories_are(lied_to: Lies):
    till = lied_to(BTCPAY_BLOCKS="named", BTCPAY_EXPLORER_CALLS_PER_HOUR="90")
    for _ in range(30):
        till.shop.invoice()
    assert till.check().complete
    status = {"confirmed": True, "block_time": till.now, "block_height": 3, "block_hash": "ab" * 32}

    def flood(_: object) -> list[dict]:
        return [{"txid": token_hex(32), "status": status}]

    till.liar.lies = {"^/address/.*/txs": flood}
    till.clock.move(hours=2)
    till.liar.asked.clear()
    till.check()
    assert 0 < till.liar.count("^/address/") <= 90 // 3 + 11
