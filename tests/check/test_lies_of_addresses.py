"""Lies about addresses and coins: they show what is not there for a while, and settle nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fake_esplora import Json, LiedTo, say, tx_of
from sweeper import Sweeper

from btcpay.check.report import Report
from btcpay.sandbox.node.script import script_of
from storage.queries import meta, payments
from storage.queries.meta import Key

Lies = Callable[..., LiedTo]
MONEY = 2_100_000_000_000_000


def look(till: LiedTo, *waited_for: Json) -> Report:
    """A run that asks the mempool for these."""
    checker = till.checker()
    run = checker.run([invoice["id"] for invoice in waited_for])
    checker.finish(run)
    return run


def show(till: LiedTo, invoice: Json, *txs: Json) -> None:
    """The liar's mempool, for this invoice's address."""
    till.liar.lies[f"^/address/{invoice['deposit_address']}/txs/mempool"] = lambda _: list(txs)


def sighting(invoice: Json, number: int, sats: int) -> Json:
    return tx_of(number, script_of(invoice["deposit_address"]), sats)


def outputs(till: LiedTo, invoice: Json) -> list[Json]:
    return till.shop.service.db.rows(payments.OUTPUTS, invoice_id=invoice["id"])


def received(till: LiedTo, invoice: Json) -> dict[str, Any]:
    return till.shop.client.get(f"/pay/{invoice['id']}/status").json


def test_an_invented_sighting_never_confirms(lied_to: Lies):
    till = lied_to()
    invoice = till.shop.invoice()
    show(till, invoice, sighting(invoice, 1, invoice["amount_sats"]))
    assert look(till, invoice).changed == {}
    assert received(till, invoice)["unconfirmed_sats"] == invoice["amount_sats"]
    till.mine(12)
    for _ in range(3):
        till.clock.move(minutes=10)
        assert look(till, invoice).changed == {}
    assert till.look(invoice)["status"] == "open" and till.payments() == []
    assert till.balance() == (0, invoice["amount_sats"])
    till.liar.lies.clear()
    look(till, invoice)
    assert till.balance() == (0, 0) and received(till, invoice)["unconfirmed_sats"] == 0


@pytest.mark.parametrize("block", ["of no height", "of the tip"])
def test_a_sighting_that_is_said_to_be_in_a_block_is_not_even_one(lied_to: Lies, block):
    till = lied_to()
    invoice = till.shop.invoice()
    till.check()
    tip = till.sandbox.chain.ledger
    of_block = {"block_height": tip.height, "block_hash": tip.tip.hash, "block_time": till.now}
    if block == "of no height":
        of_block |= {"block_height": 90_000_000, "block_hash": "ab" * 32}
    shown = sighting(invoice, 1, invoice["amount_sats"])
    show(till, invoice, shown | {"status": {"confirmed": True} | of_block})
    assert look(till, invoice).complete
    assert outputs(till, invoice) == [] and till.balance() == (0, 0)


def test_all_the_money_there_is_waiting_at_an_address_does_not_stop_what_a_block_proves(
    lied_to: Lies,
):
    till = lied_to()
    invoice, other = till.shop.invoice(), till.shop.invoice()
    show(till, invoice, sighting(invoice, 1, MONEY))
    assert look(till, invoice).complete
    assert till.balance() == (0, MONEY)
    till.pay(invoice)
    till.pay(other)
    till.mine()
    report = till.check()
    assert report.complete and report.changed == {invoice["id"]: "paid", other["id"]: "paid"}
    # A sighting more is refused, and only that.
    show(till, other, sighting(other, 2, 1_000))
    assert look(till, other).failed == [other["id"]]
    till.liar.lies.clear()
    look(till, invoice, other)
    assert till.balance() == (invoice["amount_sats"] + other["amount_sats"],) * 2


@pytest.mark.parametrize(("shown", "vanishes"), [(24, True), (25, False), (50, False)])
def test_a_list_that_may_be_cut_makes_nothing_vanish(lied_to: Lies, shown, vanishes):
    till = lied_to()
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    look(till, invoice)
    show(till, invoice, *(sighting(invoice, number, 600) for number in range(1, shown + 1)))
    till.clock.move(minutes=2)
    assert look(till, invoice).complete
    (ours,) = (one for one in outputs(till, invoice) if one["txid"] == txid)
    assert (ours["vanished_at"] is not None) == vanishes
    till.liar.lies.clear()
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}


def test_an_address_whose_mempool_cannot_be_had_holds_up_nobody_else(lied_to: Lies):
    till = lied_to()
    dusty, invoice = till.shop.invoice(expires_in_hours=1), till.shop.invoice(expires_in_hours=1)
    till.liar.lies = {f"/address/{dusty['deposit_address']}": lambda _: say("too many", 400)}
    till.clock.move(minutes=61)
    report = till.check()
    assert report.failed == [dusty["id"]] and report.changed == {invoice["id"]: "expired"}
    assert not report.complete and till.look(dusty)["status"] == "open"


# What explorers say of addresses and coins settles nothing.


def test_a_payment_cannot_be_hidden(lied_to: Lies):
    """Neither the mempool nor the address's history shows it."""
    till = lied_to()
    invoice = till.shop.invoice()
    till.check()
    till.liar.lies = {"^/address/": lambda _: [], "^/tx/": lambda _: {"spent": False}}
    till.pay(invoice)
    till.mine()
    report = look(till, invoice)
    assert report.complete and report.changed == {invoice["id"]: "paid"}


def test_a_spend_cannot_be_hidden(lied_to: Lies):
    till = lied_to()
    sweeper = Sweeper(till)
    invoice = sweeper.invoice()
    txid = till.pay(invoice)
    till.mine()
    till.check()
    till.liar.lies = {"^/address/": lambda _: [], "^/tx/": lambda _: {"spent": False}}
    sweeper.sweep(invoice, txid)
    till.mine()
    assert till.check().complete and till.balance() == (0, 0)


def spent_in(height: int, hash: str) -> Json:
    """A spend of a coin, as Esplora tells it."""
    status = {"block_height": height, "block_hash": hash, "block_time": 1_700_000_000}
    return {"spent": True, "txid": "cd" * 32, "vin": 0, "status": {"confirmed": True} | status}


@pytest.mark.parametrize("kept", ["all", "named"])
@pytest.mark.parametrize("where", ["the tip", "its own block", "an old block", "nowhere", "below"])
def test_a_false_spend_is_impossible(lied_to: Lies, kept, where):
    till = lied_to(BTCPAY_BLOCKS=kept)
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.check()
    paid_height = till.sandbox.chain.ledger.height
    till.mine(3)
    till.check()
    till.clock.move(minutes=11)
    ledger = till.sandbox.chain.ledger
    heights = {"the tip": ledger.height, "its own block": paid_height}
    heights |= {"an old block": paid_height - 3, "below": 20, "nowhere": 90_000_000}
    height = heights[where]
    hash = ledger.hashes[height] if height < len(ledger.hashes) else "ab" * 32
    till.liar.lies = {"/outspend/": lambda _: spent_in(height, hash)}
    for _ in range(3):
        till.clock.move(minutes=11)
        assert till.check().complete
    assert till.balance() == (invoice["amount_sats"],) * 2
    assert till.kinds(invoice)[-1] == "paid"
    assert (till.liar.count("/outspend/") > 0) == (kept == "named")


def old_coin(till: LiedTo) -> Json:
    """A paid invoice of a shop that upgraded: the coin's block is below the first that it keeps."""
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.check()
    till.clock.move(hours=1)
    till.mine(2)
    till.clock.move(hours=30)
    till.mine(12)
    till.shop.sql("DELETE FROM block")
    till.shop.sql("UPDATE output SET asked_at = -1")
    meta.put_time(till.shop.service.db, Key.BEGIN_AT, till.clock() - timedelta(hours=1))
    return invoice


@pytest.mark.parametrize("height", [5, 150, 195, 201, 202, 204])
def test_a_false_spend_of_an_old_coin_is_impossible_and_asked_for_once(lied_to: Lies, height):
    till = lied_to()
    invoice = old_coin(till)
    hash = till.sandbox.chain.ledger.hashes[height]
    till.liar.lies = {"/outspend/": lambda _: spent_in(height, hash)}
    for _ in range(3):
        assert till.check().complete
    assert till.balance() == (invoice["amount_sats"],) * 2
    assert till.liar.count("/outspend/") == 1


def test_a_page_with_no_header_below_ours_is_refused_and_asked_for_no_more(lied_to: Lies, caplog):
    """An old block is named; the headers down to it never come."""
    till = lied_to()
    invoice = old_coin(till)
    till.check()
    first = till.shop.sql("SELECT MIN(height) FROM block").fetchone()[0]
    till.shop.sql("UPDATE output SET asked_at = -1")
    hash = till.sandbox.chain.ledger.hashes[first - 15]
    till.liar.lies = {
        "/outspend/": lambda _: spent_in(first - 15, hash),
        f"^/blocks/{first}$": lambda shown: shown[:1],
    }
    till.liar.asked.clear()
    till.check()
    assert till.liar.count("^/blocks/") < 5
    assert till.balance() == (invoice["amount_sats"],) * 2
