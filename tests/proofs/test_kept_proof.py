"""The proof of a payment that is kept: made when its block is read, and longer when it counts."""

import json

import pytest
from builders import open_shop
from test_document import ALONE, FIRST, FOLLOWING

from btcpay.bitcoin.header import parse_header
from btcpay.chain.follow import add_header
from btcpay.check.apply import apply
from btcpay.proofs.document import extended
from btcpay.settlement.values import Block, Scan, SeenOutput
from storage.queries import payments

HEIGHT, TXID = 100, ALONE["txid"]


@pytest.fixture
def shop(tmp_path, ticker, clock):
    with open_shop(tmp_path, ticker.url, clock, BTCPAY_CONFIRMATIONS="3") as opened:
        with opened.service.db.write():
            for height, raw in enumerate([FIRST, *FOLLOWING], HEIGHT):
                add_header(opened.service.db, height, raw)
        yield opened


def read(shop, invoice, tip_height):
    """The check reads the block of the payment."""
    mined_in = Block(HEIGHT, parse_header(FIRST).hash, shop.clock())
    seen = SeenOutput(TXID, 1, invoice["amount_sats"], mined_in, 4)
    scan = Scan(shop.clock(), tip_height, confirmed=[seen])
    proofs = {TXID: json.dumps(ALONE)}
    apply(shop.service.db, shop.service.settings, invoice["id"], scan, shop.clock(), proofs)


def deepen(shop, invoice, tip_height):
    scan = Scan(shop.clock(), tip_height)
    apply(shop.service.db, shop.service.settings, invoice["id"], scan, shop.clock())


def kept(shop, invoice):
    row = shop.service.db.only(payments.PROOF, invoice_id=invoice["id"], txid=TXID)
    return json.loads(row.document)


def test_it_has_as_many_headers_as_were_asked_for_also_when_its_block_is_read_again(shop):
    invoice = shop.invoice()
    read(shop, invoice, HEIGHT)
    assert kept(shop, invoice) == ALONE
    deepen(shop, invoice, HEIGHT + 1)
    assert kept(shop, invoice)["confirmations"] == 1
    deepen(shop, invoice, HEIGHT + 2)
    assert kept(shop, invoice) == extended(ALONE, FOLLOWING[:2])
    read(shop, invoice, HEIGHT + 3)
    assert kept(shop, invoice)["confirmations"] == 3
