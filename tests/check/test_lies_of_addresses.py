"""Lies about addresses and coins: they show what is not there for a while, and settle nothing."""

from typing import Any

import pytest
from fake_esplora import Json, LiedTo, tx_of

from btcpay.sandbox.node.script import script_of
from storage.queries import payments

MONEY = 2_100_000_000_000_000


def show(till: LiedTo, invoice: Json, *txs: Json) -> None:
    """The liar's mempool, for this invoice's address."""
    till.liar.lies[f"^/address/{invoice['deposit_address']}/txs/mempool"] = lambda _: list(txs)


def sighting(invoice: Json, number: int, sats: int) -> Json:
    return tx_of(number, script_of(invoice["deposit_address"]), sats)


def outputs(till: LiedTo, invoice: Json) -> list[Json]:
    return till.shop.service.db.rows(payments.OUTPUTS, invoice_id=invoice["id"])


def received(till: LiedTo, invoice: Json) -> dict[str, Any]:
    return till.shop.client.get(f"/pay/{invoice['id']}/status").json


def test_an_invented_sighting_never_confirms(till):
    invoice = till.shop.invoice()
    show(till, invoice, sighting(invoice, 1, invoice["amount_sats"]))
    assert till.look_for(invoice).changed == {}
    assert received(till, invoice)["unconfirmed_sats"] == invoice["amount_sats"]
    till.mine(12)
    for _ in range(3):
        till.clock.move(minutes=10)
        assert till.look_for(invoice).changed == {}
    assert till.look(invoice)["status"] == "open" and till.payments() == []
    assert till.balance() == (0, invoice["amount_sats"])
    till.liar.lies.clear()
    till.look_for(invoice)
    assert till.balance() == (0, 0) and received(till, invoice)["unconfirmed_sats"] == 0


@pytest.mark.parametrize("block", ["of no height", "of the tip"])
def test_a_sighting_that_is_said_to_be_in_a_block_is_not_even_one(till, block):
    invoice = till.shop.invoice()
    till.check()
    tip = till.sandbox.chain.ledger
    of_block = {"block_height": tip.height, "block_hash": tip.tip.hash, "block_time": till.now}
    if block == "of no height":
        of_block |= {"block_height": 90_000_000, "block_hash": "ab" * 32}
    shown = sighting(invoice, 1, invoice["amount_sats"])
    show(till, invoice, shown | {"status": {"confirmed": True} | of_block})
    assert till.look_for(invoice).complete
    assert outputs(till, invoice) == [] and till.balance() == (0, 0)


def test_all_the_money_there_is_waiting_at_an_address_does_not_stop_what_a_block_proves(till):
    invoice, other = till.shop.invoice(), till.shop.invoice()
    show(till, invoice, sighting(invoice, 1, MONEY))
    assert till.look_for(invoice).complete
    assert till.balance() == (0, MONEY)
    till.pay(invoice)
    report = till.confirm(other)
    assert report.complete and report.changed == {invoice["id"]: "paid", other["id"]: "paid"}
    # A sighting more is refused, and only that.
    show(till, other, sighting(other, 2, 1_000))
    assert till.look_for(other).failed == [other["id"]]
    till.liar.lies.clear()
    till.look_for(invoice, other)
    assert till.balance() == (invoice["amount_sats"] + other["amount_sats"],) * 2


@pytest.mark.parametrize(("shown", "vanishes"), [(24, True), (25, False), (50, False)])
def test_a_list_that_may_be_cut_makes_nothing_vanish(till, shown, vanishes):
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    till.look_for(invoice)
    show(till, invoice, *(sighting(invoice, number, 600) for number in range(1, shown + 1)))
    till.clock.move(minutes=2)
    assert till.look_for(invoice).complete
    (ours,) = (one for one in outputs(till, invoice) if one["txid"] == txid)
    assert (ours["vanished_at"] is not None) == vanishes
    till.liar.lies.clear()
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
