"""Accounts of every form: paid, spent, proven and reorganised as each other."""

import json

import pytest
from accounts import FORMS, Owner
from bitcoin_node import NOBODY

from btcpay.proofs.document import check_document
from storage.queries import payments

pytestmark = pytest.mark.both_databases


def test_an_invoice_of_every_form_is_seen_paid_proven_spent_and_taken_back(till):
    owners = [Owner(till.shop, name) for name in FORMS]
    invoices = [owner.invoice() for owner in owners]
    sats = invoices[0]["amount_sats"]

    def states():
        found = zip(owners, invoices, strict=True)
        return {(owner.status(invoice), owner.balance()) for owner, invoice in found}

    raw = till.sandbox.wallet.draft({invoice["deposit_address"]: sats for invoice in invoices})
    paid_by = till.sandbox.chain.accept(raw, till.now)
    till.open_page(*invoices)
    assert till.check().failed == [] and states() == {("open", (0, sats))}
    till.mine()
    changed = till.check().changed
    assert changed == {invoice["id"]: "paid" for invoice in invoices}
    assert states() == {("paid", (sats, sats))}
    for invoice in invoices:
        rows = till.shop.service.db.rows(payments.PROOFS_OF_ADDRESS, invoice_id=invoice["id"])
        (proven,) = (check_document(json.loads(row["document"])) for row in rows)
        assert (proven.txid, sum(proven.amounts_sats.values())) == (paid_by, sats)
    for vout, (owner, invoice) in enumerate(zip(owners, invoices, strict=True)):
        spend = owner.spend(invoice, paid_by, vout, NOBODY)
        till.sandbox.chain.accept(spend.raw, till.now)
    till.mine()
    assert till.check().failed == [] and states() == {("paid", (0, 0))}
    till.sandbox.chain.reorganise(1, till.now)
    assert till.check().failed == [] and states() == {("paid", (sats, sats))}
    till.sandbox.chain.reorganise(3, till.now)
    assert till.check().failed == [] and states() == {("open", (0, sats))}
    till.mine()
    assert till.check().changed == changed and states() == {("paid", (0, 0))}
