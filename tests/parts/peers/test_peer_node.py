"""A full node as a peer: payments found, reorganised, proven and announced by its own protocol."""

from dataclasses import replace

import pytest

from btcpay.check.announcements import open_announcements
from btcpay.check.report import Report
from tests.support.builders import until
from tests.support.fake_peer import deafen, over_peers
from tests.support.node_till import open_chain, open_node_till

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def chain():
    with open_chain() as opened:
        yield opened


@pytest.fixture
def till(tmp_path, ticker, chain):
    with open_node_till(tmp_path, ticker, chain) as opened:
        yield opened


def check_over_peers(till):
    """A run that asks the node by Bitcoin's own protocol, and no explorer."""
    return over_peers(till, till.node.place).run()


def test_a_payment_is_found_reorganised_and_proven_by_the_nodes_own_protocol(till):
    till.mine()  # bcoin shows no headers before its tip is one of the day
    invoice = till.shop.invoice()
    assert check_over_peers(till).complete
    txid = till.pay(invoice)
    till.mine()
    assert check_over_peers(till).new_statuses == {invoice["id"]: "paid"}
    assert till.proof(invoice).txid == txid
    raw = till.node.transaction(txid).raw
    till.mine()
    block_hash = till.node.reorganise(2, instead=[raw])[0]
    assert check_over_peers(till).new_statuses == {invoice["id"]: "paid"}
    assert till.proof(invoice).block_hash == block_hash
    assert till.balance() == (invoice["amount_sats"],) * 2


def test_a_payment_is_seen_as_the_node_announces_it(till):
    till.mine()
    invoice = till.shop.invoice()
    part_sats = 5_000
    till.open_page(invoice)
    settings = replace(till.settings, peers=(till.node.place,))
    listening = open_announcements(settings, till.shop.service.db, till.clock)
    assert listening and not listening.collect()
    # A transaction sent before the node has greeted is announced to nobody.
    until(
        lambda: till.pay(invoice, part_sats) and listening.collect(),
        "a part",
        every_s=1,
    )
    listening.apply(Report())
    deafen(listening.listener)
    shown = till.shop.client.get(f"/pay/{invoice['id']}/status").json
    assert (shown["status"], shown["received_sats"]) == (
        "open",
        shown["unconfirmed_sats"],
    )
    assert shown["received_sats"] and shown["received_sats"] % part_sats == 0
    till.mine_and_check()
    assert till.kinds(invoice)[0] == "seen"
