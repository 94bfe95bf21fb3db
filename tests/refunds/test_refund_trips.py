"""A refund from its making to the block that sends it, and back: on a chain, by the commands."""

import pytest
from fake_esplora import Terminal, open_till
from shop_events import kinds
from shop_refunds import address, made, send

from btcpay.refunds import acts

pytestmark = pytest.mark.both_databases


@pytest.fixture
def till(tmp_path, ticker, clock):
    with open_till(tmp_path, ticker, clock) as opened:
        yield opened


def paid(till, sats=None):
    invoice = till.shop.invoice()
    till.confirm(invoice, sats)
    return invoice


def mine(till, blocks=1):
    till.mine(blocks)
    return till.check()


def status(till, refund):
    row = acts.find(till.shop.service.db, refund.id)
    return row.status, row.tx_hash


def needs(till, invoice):
    """The reason why it needs attention, or None."""
    return Terminal(till).json("invoice", "show", invoice["id"])["attention"]


def test_from_the_payers_address_to_the_block(till):
    invoice = paid(till)
    refund = made(till, invoice)
    assert (refund.status, refund.amount_sats) == ("requested", invoice["amount_sats"])
    given = acts.give(till.shop.service.db, till.settings, refund.id, address(1), till.clock())
    txid = send(till, given)
    till.check()
    assert status(till, refund) == ("ready", None)
    mine(till)
    assert status(till, refund) == ("sent", txid)
    assert kinds(till)[-3:] == ["refund.requested", "refund.ready", "refund.sent"]
    assert till.kinds(invoice)[-3:] == ["refund made", "refund ready", "refund sent"]
