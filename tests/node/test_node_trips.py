"""Payments on a full node's chain, through the explorer client and the check: what a node shows.

The rules of settlement are tried on the chain of the sandbox (tests/check). One chain and clock for
all, which only ever goes forward; a new shop for each test.
"""

from dataclasses import replace

import pytest
from builders import until
from node_till import open_chain, open_node_till

from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.peers.listener import Listener
from btcpay.chain.peers.pool import Peers
from btcpay.check.listening import Listening
from btcpay.check.report import Report
from btcpay.http import http_client


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


def check_over_peers(till):
    """A run that asks the node by Bitcoin's own protocol, and no explorer."""
    db, network = till.shop.service.db, till.settings.network
    nobody = Explorers(network, (), http_client.Session())
    checker = till.checker(explorers=nobody, peers=(till.node.place,))
    settings = replace(checker.settings, explorers=())
    peers = Peers(network, [till.node.place], db.close)
    return replace(checker, settings=settings, peers=peers).run()


def test_a_payment_is_found_reorganised_and_proven_by_the_nodes_own_protocol(till):
    till.mine()  # bcoin shows no headers before its tip is one of the day
    invoice = till.shop.invoice()
    assert check_over_peers(till).complete
    txid = till.pay(invoice)
    till.mine()
    assert check_over_peers(till).changed == {invoice["id"]: "paid"}
    assert till.proof(invoice).txid == txid
    raw = till.node.transaction(txid).raw
    till.mine()
    block_hash = till.node.reorganise(2, instead=[raw])[0]
    assert check_over_peers(till).changed == {invoice["id"]: "paid"}
    assert till.proof(invoice).block_hash == block_hash
    assert till.balance() == (invoice["amount_sats"],) * 2


def test_a_payment_is_seen_as_the_node_announces_it(till):
    till.mine()
    invoice, part_sats = till.shop.invoice(), 5_000
    till.open_page(invoice)
    listener = Listener(till.settings.network, lambda: [till.node.place], till.clock)
    listening = Listening(till.shop.service.db, till.settings, listener, till.clock)
    assert not listening.has_news()
    # What is sent before the node has greeted is announced to nobody.
    until(lambda: till.pay(invoice, part_sats) and listening.has_news(), "a part", every_s=1)
    listening.apply(Report())
    listener.listen(False)
    status, received_sats, unconfirmed_sats = till.state(invoice)
    assert (status, received_sats) == ("open", unconfirmed_sats)
    assert received_sats and received_sats % part_sats == 0
    till.mine()
    till.check()
    assert till.kinds(invoice)[0] == "seen"
