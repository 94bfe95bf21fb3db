"""The delays of an invoice's end, and their limits: a raised fee, a list that may be cut."""

import pytest
from attention_cases import reason_of
from fake_esplora import tx_of

from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.wallet import replace

pytestmark = pytest.mark.both_databases


def dust(invoice, count):
    script = script_of(invoice["deposit_address"])
    return [tx_of(number, script, 330) for number in range(1, count + 1)]


def beside_dust(till, invoice, count=25):
    """The explorer shows so many small payments beside the true ones."""
    path = f"^/address/{invoice['deposit_address']}/txs/mempool"
    till.liar.lies[path] = lambda true: [*dust(invoice, count), *true]


@pytest.mark.parametrize("seen", ["waiting too", "in its block alone"])
def test_a_fee_that_is_raised_after_the_deadline_makes_nobody_late(till, seen):
    invoice = till.shop.invoice(expires_in_hours=1)
    txid = till.pay(invoice)
    till.look_for(invoice)
    till.clock.move(minutes=61)
    raised = replace(till.sandbox.wallet, till.now, txid)
    if seen == "waiting too":
        assert till.look_for(invoice).changed == {}
        assert till.look_for(invoice).changed == {}
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert [one["tx_hash"] for one in till.payments(invoice)] == [raised]
    assert till.balance() == (invoice["amount_sats"],) * 2
    assert reason_of(till, invoice) is None


def test_a_full_payment_beside_25_small_ones_is_seen_and_settles(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    beside_dust(till, invoice)
    till.look_for(invoice)
    till.pay(invoice)
    till.clock.move(minutes=30)
    till.look_for(invoice)
    shown = till.shop.client.get(f"/pay/{invoice['id']}/status").json
    assert shown["unconfirmed_sats"] == invoice["amount_sats"] + 25 * 330
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}


def test_25_small_payments_hold_an_end_for_a_day_and_late_money_then_wants_attention(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    beside_dust(till, invoice)
    till.look_for(invoice)
    till.clock.move(hours=2)
    assert till.confirm(invoice).complete and till.look_for(invoice).changed == {}
    assert till.look(invoice)["status"] == "open" and till.payments()[0]["invoice_id"] is None
    till.clock.move(hours=23.1)
    assert till.look_for(invoice).changed == {invoice["id"]: "expired"}
    assert reason_of(till, invoice) == "paid_late"
    assert till.balance()[0] == invoice["amount_sats"]
