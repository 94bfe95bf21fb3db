"""Lies about addresses and coins: they show what is not there for a while, and settle nothing."""

import pytest
from fake_esplora import tx_of

from btcpay.sandbox.node.script import script_of
from storage.queries import payments


def show(till, invoice, *txs):
    """The liar's mempool, for this invoice's address."""
    till.liar.lies[f"^/address/{invoice['deposit_address']}/txs/mempool"] = lambda _: list(txs)


def sighting(invoice, number, sats):
    return tx_of(number, script_of(invoice["deposit_address"]), sats)


def outputs(till, invoice):
    return till.shop.service.db.rows(payments.OUTPUTS, invoice_id=invoice["id"])


def received(till, invoice):
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
