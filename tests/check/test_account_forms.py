"""Accounts of every form: paid by `bit`, spent, proven and reorganised as each other."""

import pytest

from btcpay.bitcoin.tx import Outpoint, TxOut
from btcpay.sandbox.node.script import script_of
from tests.support.accounts import FORMS, Owner
from tests.support.bitcoin_node import NOBODY
from tests.support.spending import Coin, bit_key, spend_by_bit

pytestmark = pytest.mark.both_databases
COIN_SATS = 1_000_000


def pay_by_bit(till, invoices):
    """One transaction, from a coin of each form that `bit` spends."""
    key = bit_key()
    coins = []
    for address in (key.address, key.segwit_address):
        funded_by = Outpoint(till.sandbox.wallet.pay(address, COIN_SATS, till.now), 0)
        coins.append(Coin(funded_by, TxOut(COIN_SATS, script_of(address)), -1))
    parts = [
        (invoice["deposit_address"], invoice["amount_sats"]) for invoice in invoices
    ]
    return till.sandbox.chain.accept(spend_by_bit([key], coins, parts, fee=2), till.now)


def test_an_invoice_of_every_form_is_seen_paid_proven_spent_and_taken_back(till):
    owners = [
        Owner(till.shop, name) for name in sorted(FORMS, key="p2tr".__eq__)
    ]  # p2tr last
    invoices = [owner.invoice() for owner in owners]
    sats = invoices[0]["amount_sats"]

    def states():
        found = zip(owners, invoices, strict=True)
        return {(owner.status(invoice), owner.balance()) for owner, invoice in found}

    paid_by = pay_by_bit(till, invoices[:-1])
    places = [
        *((paid_by, vout) for vout in range(len(FORMS) - 1)),
        (till.pay(invoices[-1]), 0),
    ]
    till.open_page(*invoices)
    assert till.check().failed == [] and states() == {("open", (0, sats))}
    till.mine()
    changed = till.check().new_statuses
    assert changed == {invoice["id"]: "paid" for invoice in invoices}
    assert states() == {("paid", (sats, sats))}
    for owner, invoice, (txid, vout) in zip(owners, invoices, places, strict=True):
        proven = till.proof(invoice)
        assert (proven.txid, proven.amounts_sats) == (txid, {vout: sats})
        spend = owner.spend(invoice, txid, vout, NOBODY)
        till.sandbox.chain.accept(spend.raw, till.now)
    assert till.mine_and_check().failed == [] and states() == {("paid", (0, 0))}
    till.sandbox.chain.reorganise(1, till.now)
    assert till.check().failed == [] and states() == {("paid", (sats, sats))}
    till.sandbox.chain.reorganise(3, till.now)
    assert till.check().failed == [] and states() == {("open", (0, sats))}
    assert till.mine_and_check().new_statuses == changed and states() == {
        ("paid", (0, 0))
    }
