"""Coins that the merchant's wallet has moved: blocks prove it, and nobody's word does."""

import pytest

from tests.support.accounts import Sweeper
from tests.support.builders import is_summed

pytestmark = pytest.mark.both_databases


@pytest.fixture
def sweeper(till):
    return Sweeper(till)


def paid_invoices(till, sweeper, count=1):
    """Invoices that were paid, by the paying transaction."""
    invoices = [sweeper.invoice() for _ in range(count)]
    made = {till.pay(invoice): invoice for invoice in invoices}
    till.mine()
    changed = till.check().new_statuses
    assert all(changed[invoice["id"]] == "paid" for invoice in invoices)
    till.liar.asked.clear()
    return made


def sweep(till, sweeper, made):
    """The merchant's wallet moves these coins, each in a transaction of its own."""
    for txid, invoice in made.items():
        sweeper.sweep(invoice, txid)
    till.mine()


def test_a_coin_leaves_the_balance_when_its_spending_confirms(till, sweeper):
    made = paid_invoices(till, sweeper)
    (invoice,) = made.values()
    sweeper.sweep(invoice, *made)
    till.check()
    assert till.balance() == (invoice["amount_sats"],) * 2
    till.mine_and_check()
    assert till.balance() == (0, 0) and is_summed(till.shop, sweeper.merchant_id)
    assert till.look(invoice)["status"] == "paid" and till.kinds(invoice)[-1] == "spent"


@pytest.mark.parametrize("days", [0, 400])
def test_all_coins_that_move_are_found_by_the_next_run_for_no_call_of_their_own(
    till, sweeper, days
):
    made = paid_invoices(till, sweeper, 5)
    (_, left), *moved = made.items()
    till.clock.move(days=days)
    sweep(till, sweeper, dict(moved))
    till.check()
    assert till.balance() == (left["amount_sats"],) * 2
    assert is_summed(till.shop, sweeper.merchant_id)
    assert till.liar.count("/outspend/|/txs/mempool|/utxo") == 0


@pytest.mark.parametrize(
    "blocks", [1, 2], ids=["in the same block", "in the next block"]
)
def test_an_invoice_whose_coin_was_moved_before_the_first_look_is_paid(
    till, sweeper, blocks
):
    invoice = sweeper.invoice()
    txid = till.pay(invoice)
    if blocks == 2:
        till.mine()
    sweeper.sweep(invoice, txid)
    assert till.mine_and_check().new_statuses == {invoice["id"]: "paid"}
    assert [p["amount_sats"] for p in till.payments(invoice)] == [
        invoice["amount_sats"]
    ]
    assert till.balance() == (0, 0) and is_summed(till.shop, sweeper.merchant_id)


def test_a_move_that_a_reorganisation_undoes_is_in_the_balance_again(till, sweeper):
    made = paid_invoices(till, sweeper)
    before = till.balance()
    sweep(till, sweeper, made)
    till.check()
    till.sandbox.chain.reorganise(1, till.now)
    till.check()
    assert till.balance() == before and is_summed(till.shop, sweeper.merchant_id)
    assert till.kinds(*made.values())[-2:] == ["spent", "unspent"]
    till.mine_and_check()
    assert till.balance() == (0, 0)
