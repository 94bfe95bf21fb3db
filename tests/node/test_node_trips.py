"""Payments on a full node's chain, through the explorer client and the check: what a node shows.

The rules of settlement are tried on the chain of the sandbox (tests/check). One chain and clock for
all, which only ever goes forward; a new shop for each test.
"""

import pytest
from node_till import open_chain, open_node_till


@pytest.fixture(scope="module")
def chain():
    with open_chain() as opened:
        yield opened


@pytest.fixture
def till(tmp_path, ticker, chain):
    with open_node_till(tmp_path, ticker, chain) as opened:
        yield opened


def test_an_exact_payment_is_seen_waiting_and_pays_with_its_block(till):
    invoice = till.shop.invoice()
    amount_sats = invoice["amount_sats"]
    txid = till.pay(invoice)
    till.open_page(invoice)
    assert till.check().changed == {}
    assert till.state(invoice) == ("open", amount_sats, amount_sats)
    assert till.balance() == (0, amount_sats)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert till.look(invoice)["tx_hash"] == txid
    assert [(p["amount_sats"], p["tx_hash"]) for p in till.payments(invoice)] == [
        (amount_sats, txid)
    ]
    assert till.balance() == (amount_sats, amount_sats)


def take_back(till, txid):
    till.node.set_time(till.now)
    till.node.mine_conflict(till.node.take_back(txid))


def drop(till, txid):
    till.node.drop(txid)


GONE = {"replaced in a block": take_back, "dropped from the mempool": drop}


@pytest.mark.parametrize("lose", GONE.values(), ids=GONE)
def test_a_waiting_payment_that_is_gone_is_history_and_no_money(till, lose):
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    till.look_for(invoice)
    lose(till, txid)
    assert till.look_for(invoice).changed == {}
    assert till.state(invoice) == ("open", 0, 0)
    assert till.kinds(invoice) == ["seen", "vanished"]
    assert till.payments() == [] and till.balance() == (0, 0)
    again = till.pay(invoice)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    assert till.look(invoice)["tx_hash"] == again
    assert [p["tx_hash"] for p in till.payments()] == [again]


@pytest.mark.parametrize("depth", [1, 3])
def test_a_payment_that_the_other_chain_has_in_another_block_is_paid_by_that_one(till, depth):
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    till.mine()
    assert till.check().changed == {invoice["id"]: "paid"}
    lost = till.proof(invoice).block_hash
    raw = till.node.transaction(txid).raw
    till.mine(depth - 1)
    block_hash = till.node.reorganise(depth, instead=[raw])[0]
    assert till.check().changed == {invoice["id"]: "paid"}  # opened and paid again in one run
    assert till.kinds(invoice).count("reorganised") == 1
    assert till.proof(invoice).block_hash == block_hash != lost
    assert [(p["tx_hash"], p["invoice_id"]) for p in till.payments()] == [(txid, invoice["id"])]
    assert till.balance() == (invoice["amount_sats"],) * 2


@pytest.mark.parametrize("others", [0, 1, 6])
def test_a_payment_in_a_nodes_block_is_proven_and_its_proof_holds_offline(till, others):
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    for _ in range(others):
        till.node.pay(till.node.wallet.addresses[0], 20_000)
    till.mine()
    till.check()
    proven = till.proof(invoice)
    assert (proven.txid, proven.block_hash) == (txid, till.node.tip()[1])
    assert list(proven.amounts_sats.values()) == [invoice["amount_sats"]]
