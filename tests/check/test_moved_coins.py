"""Coins that the merchant's wallet has moved: blocks prove it, and nobody's word does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import Clock, TickerServer
from fake_esplora import Json, LiedTo, open_lied_to, say
from sweeper import Sweeper

from btcpay.sandbox.payer.misbehave import double_spends
from storage.queries import balances, meta

pytestmark = pytest.mark.both_databases


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, clock: Clock) -> Iterator[LiedTo]:
    with open_lied_to(tmp_path, ticker, clock) as opened:
        yield opened


@pytest.fixture
def sweeper(till: LiedTo) -> Sweeper:
    return Sweeper(till)


def paid(till: LiedTo, sweeper: Sweeper, count: int = 1) -> dict[str, Json]:
    """Invoices that were paid, by the paying transaction."""
    invoices = [sweeper.invoice() for _ in range(count)]
    made = {till.pay(invoice): invoice for invoice in invoices}
    till.mine()
    assert len(till.check().changed) == count
    till.liar.asked.clear()
    return made


def sweep(till: LiedTo, sweeper: Sweeper, made: dict[str, Json]) -> None:
    """The merchant's wallet moves these coins, each in a transaction of its own."""
    for txid, invoice in made.items():
        sweeper.sweep(invoice, txid)
    till.mine()


def balances_agree(till: LiedTo, sweeper: Sweeper) -> bool:
    at: dict[str, Any] = {"merchant_id": sweeper.merchant_id}
    db = till.shop.service.db
    return db.only(balances.OF_MERCHANT, **at) == db.only(balances.RECOMPUTED, **at)


def test_a_coin_leaves_the_balance_when_its_spending_confirms(till, sweeper):
    made = paid(till, sweeper)
    (invoice,) = made.values()
    sweeper.sweep(invoice, *made)
    till.check()
    assert till.balance() == (invoice["amount_sats"],) * 2
    till.mine()
    till.check()
    assert till.balance() == (0, 0) and balances_agree(till, sweeper)
    assert till.look(invoice)["status"] == "paid" and till.kinds(invoice)[-1] == "spent"


@pytest.mark.parametrize("days", [0, 400])
def test_all_coins_that_move_are_found_by_the_next_run_for_no_call_of_their_own(
    till, sweeper, days
):
    made = paid(till, sweeper, 5)
    (_, left), *moved = made.items()
    till.clock.move(days=days)
    sweep(till, sweeper, dict(moved))
    till.check()
    assert till.balance() == (left["amount_sats"],) * 2 and balances_agree(till, sweeper)
    assert till.liar.count("/address/|/outspend/") == 0


@pytest.mark.parametrize("blocks", [1, 2], ids=["in the same block", "in the next block"])
def test_an_invoice_whose_coin_was_moved_before_the_first_look_is_paid(till, sweeper, blocks):
    invoice = sweeper.invoice()
    txid = till.pay(invoice)
    if blocks == 2:
        till.mine()
    sweeper.sweep(invoice, txid)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert [p["amount_sats"] for p in till.payments(invoice)] == [invoice["amount_sats"]]
    assert till.balance() == (0, 0) and balances_agree(till, sweeper)


def test_a_move_that_a_reorganisation_undoes_is_in_the_balance_again(till, sweeper):
    made = paid(till, sweeper)
    before = till.balance()
    sweep(till, sweeper, made)
    till.check()
    till.sandbox.chain.reorganise(1, till.now)
    till.check()
    assert till.balance() == before and balances_agree(till, sweeper)
    assert till.kinds(*made.values())[-2:] == ["spent", "unspent"]
    till.mine()
    till.check()
    assert till.balance() == (0, 0)


def test_a_payment_and_its_move_that_a_reorganisation_takes_back_are_both_gone(till, sweeper):
    made = paid(till, sweeper)
    (invoice,) = made.values()
    sweep(till, sweeper, made)
    till.check()
    till.sandbox.chain.reorganise(2, till.now, double_spends(till.sandbox.wallet, 2))
    till.check()
    assert till.look(invoice)["status"] == "open" and till.payments() == []
    till.look_for(invoice)
    assert till.balance() == (0, 0) and balances_agree(till, sweeper)


def test_another_merchants_coins_are_left_alone(till, sweeper):
    shop = till.shop
    key = shop.issue("write", shop.merchant_id)
    other = shop.post("/invoices", {"amount_usd": 25}, key).json
    till.pay(other)
    made = paid_beside(till, sweeper)
    sweep(till, sweeper, made)
    till.check()
    sums = till.shop.service.db.only(balances.OF_MERCHANT, merchant_id=shop.merchant_id)
    assert sums["confirmed_sats"] == other["amount_sats"] and till.balance() == (0, 0)


def paid_beside(till: LiedTo, sweeper: Sweeper) -> dict[str, Json]:
    invoice = sweeper.invoice()
    made = {till.pay(invoice): invoice}
    till.mine()
    till.check()
    return made


# Who says that a coin has moved, and it has not


@pytest.mark.parametrize("which", ["all", "named"])
def test_no_word_of_an_explorer_takes_a_coin_out_of_the_balance(tmp_path, ticker, clock, which):
    with open_lied_to(tmp_path, ticker, clock, BTCPAY_BLOCKS=which) as till:
        made = paid(till, Sweeper(till))
        (txid,) = made
        before, ledger = till.balance(), till.sandbox.chain.ledger
        till.mine(2)
        spent = {"block_height": ledger.height - 1, "block_hash": ledger.hashes[-2]}
        status = spent | {"confirmed": True, "block_time": till.now}
        spending = {"txid": txid, "vout": 0, "is_coinbase": False}
        invented = {"txid": "ab" * 32, "vin": [spending], "vout": [], "status": status}
        till.liar.lies = {
            "/outspend/": lambda _: {"spent": True, "txid": "ab" * 32, "vin": 0, "status": status},
            "/address/": lambda txs: [*txs, invented],
        }
        for _ in range(3):
            till.clock.move(minutes=11)
            till.look_for(*made.values())
            till.check()
        assert till.balance() == before


def test_where_only_named_blocks_are_read_a_hidden_move_is_found_when_it_is_named(
    tmp_path, ticker, clock
):
    with open_lied_to(tmp_path, ticker, clock, BTCPAY_BLOCKS="named") as till:
        sweeper = Sweeper(till)
        made = paid(till, sweeper)
        before = till.balance()
        sweep(till, sweeper, made)
        till.liar.lies = {"/outspend/": lambda _: {"spent": False}, "/address/": lambda _: []}
        till.clock.move(minutes=11)
        till.check()
        assert till.balance() == before
        till.liar.lies = {}
        till.clock.move(minutes=11)
        till.check()
        assert till.balance() == (0, 0) and balances_agree(till, sweeper)


# Coins from before the first block that is kept, as a shop has them that was upgraded


def forget_blocks(till: LiedTo, count: int = 12) -> None:
    """The chain is followed from its tip on, as if it had not been followed before.

    So many blocks later: the twelve headers below the first one are kept too.
    """
    till.shop.sql("DELETE FROM block")
    till.shop.sql("UPDATE output SET asked_at = -1")
    till.clock.move(hours=2)
    till.mine(count)
    till.clock.move(hours=2)
    meta.put_time(till.shop.service.db, meta.Key.BEGIN_AT, till.clock())


def test_a_coin_that_had_moved_before_is_asked_for_once_and_proven_by_the_older_block(
    till, sweeper
):
    made = paid(till, sweeper, 2)
    (moved, _), (_, kept) = made.items()
    sweep(till, sweeper, {moved: made[moved]})
    forget_blocks(till)
    till.check()
    assert till.balance() == (kept["amount_sats"],) * 2 and balances_agree(till, sweeper)
    assert till.liar.count("/outspend/") == 2
    till.mine()
    till.check()
    assert till.liar.count("/outspend/") == 2


@pytest.mark.parametrize("count", [1, 2, 11, 12, 13])
def test_such_a_coin_is_asked_for_though_the_header_of_its_block_is_kept(till, sweeper, count):
    """The headers below the first one are kept, and their blocks are not read."""
    made = paid(till, sweeper)
    sweep(till, sweeper, made)
    forget_blocks(till, count)
    till.check()
    assert till.balance() == (0, 0) and balances_agree(till, sweeper)
    assert till.liar.count("/outspend/") == 1


def test_such_a_coin_is_asked_for_again_when_another_had_older_headers_kept(till, sweeper):
    made = paid(till, sweeper, 2)
    _, second = made
    for txid in made:
        sweep(till, sweeper, {txid: made[txid]})
    forget_blocks(till, 20)
    till.liar.lies = {f"/{second}/outspend/": lambda _: say("no", 500)}
    till.check()
    assert till.balance() == (made[second]["amount_sats"],) * 2
    till.liar.lies = {}
    till.check()
    assert till.balance() == (0, 0) and balances_agree(till, sweeper)


def test_such_a_coin_that_moves_later_is_found_by_its_block(till, sweeper):
    made = paid(till, sweeper)
    forget_blocks(till)
    till.check()
    till.liar.lies = {"/outspend/": lambda _: say("no", 500)}
    sweep(till, sweeper, made)
    till.check()
    assert till.balance() == (0, 0)


def test_while_nobody_can_be_asked_for_an_old_coin_it_is_kept_and_asked_for_again(till, sweeper):
    made = paid(till, sweeper)
    before = till.balance()
    sweep(till, sweeper, made)
    forget_blocks(till)
    till.liar.lies = {"/outspend/": lambda _: say("no", 500)}
    assert till.check().behind == 0
    assert till.balance() == before
    till.liar.lies = {}
    till.check()
    assert till.balance() == (0, 0)
