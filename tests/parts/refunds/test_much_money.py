"""A payer who sends thousands of outputs to the address of one refund: it costs the shop little."""

import pytest

from btcpay.bitcoin.tx import TxOut
from btcpay.parts.refunds.decide import MOST_UNUSED
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.coins import choose
from tests.support.databases import about_sqlite
from tests.support.fake_esplora import Terminal
from tests.support.shop_refunds import address, found, made, paid, send
from tests.support.statements import statements

pytestmark = pytest.mark.both_databases
OUTPUTS = 3_200  # of 294 satoshis: about as many as a node relays in one transaction
MOST_STATEMENTS = 60  # more than without it, whatever the number of outputs
MOST_BYTES = 300_000  # of the proof, in hex: twice the transaction


def pay_dust(till, refund):
    wallet = till.sandbox.wallet
    outputs = [TxOut(294, script_of(refund.address))] * OUTPUTS
    fee_sats = 250_000
    coins = choose(wallet.coins(), OUTPUTS * 294 + fee_sats)
    return till.sandbox.chain.accept(wallet.build(coins, outputs, fee_sats), till.now)


@pytest.mark.parametrize(
    "sats", [294, 10_000], ids=["of exactly its sum", "of another sum"]
)
def test_much_money_to_one_script_is_one_proof_and_a_few_rows(till, sats):
    refund = made(till, paid(till), sats, address(1))
    txid = pay_dust(till, refund)
    theirs = till.shop.invoice()
    till.pay(theirs)
    till.mine_and_check()
    assert till.shop.get(f"/invoices/{theirs['id']}").json["status"] == "paid"
    (rows,) = till.shop.sql("SELECT COUNT(*) FROM refund_output").fetchone()
    assert rows <= MOST_UNUSED + 1
    (proofs,) = till.shop.sql("SELECT document FROM refund_transaction").fetchall()
    assert len(proofs[0]) < MOST_BYTES
    expected = ("sent", txid) if sats == 294 else ("ready", None)
    assert (found(till, refund).status, found(till, refund).tx_hash) == expected


@about_sqlite
def test_the_number_of_statements_does_not_grow_with_the_outputs(till):
    refund = made(till, paid(till), 294, address(1))
    till.mine()
    with statements(till.shop) as quiet:
        till.check()
    pay_dust(till, refund)
    till.mine()
    with statements(till.shop) as loud:
        till.check()
    assert found(till, refund).status == "sent"
    assert 0 < len(loud) - len(quiet) < MOST_STATEMENTS


def test_what_the_merchant_sent_is_found_behind_much_dust(till):
    refund = made(till, paid(till), 10_000, address(1))
    pay_dust(till, refund)
    send(till, refund, 9_700)
    till.mine_and_check()
    first, *_ = Terminal(till).json("refund", "sent", refund.id)
    assert first["amount_sats"] == 9_700
