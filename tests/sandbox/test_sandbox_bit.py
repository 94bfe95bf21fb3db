"""Invoices paid on the sandbox's chain by `bit`: found, and proven by a block with its payment."""

import json

import pytest
from accounts import FORMS, Owner
from spending import Coin, bit_key, spend_by_bit

from btcpay.bitcoin.tx import Outpoint, TxOut
from btcpay.proofs.document import check_document
from btcpay.sandbox.node.script import script_of
from storage.queries import payments

COIN_SATS = 1_000_000


@pytest.mark.parametrize("own", [["address"], ["segwit_address"], ["address", "segwit_address"]])
def test_an_invoice_of_each_form_that_bit_knows_is_paid_by_it(till, own):
    key, coins = bit_key(), []
    for address in (getattr(key, each) for each in own):
        outpoint = Outpoint(till.sandbox.wallet.pay(address, COIN_SATS, till.now), 0)
        coins.append(Coin(outpoint, TxOut(COIN_SATS, script_of(address)), -1))
    owners = [Owner(till.shop, form) for form in FORMS if form != "p2tr"]
    invoices = [owner.invoice() for owner in owners]
    parts = [(invoice["deposit_address"], invoice["amount_sats"]) for invoice in invoices]
    txid = till.sandbox.chain.accept(spend_by_bit([key], coins, parts, fee=2), till.now)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid" for invoice in invoices}
    for vout, invoice in enumerate(invoices):
        rows = till.shop.service.db.rows(payments.PROOFS_OF_ADDRESS, invoice_id=invoice["id"])
        (proven,) = (check_document(json.loads(row["document"])) for row in rows)
        assert (proven.txid, proven.amounts_sats) == (txid, {vout: invoice["amount_sats"]})
