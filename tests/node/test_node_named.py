"""A shop that reads only the blocks that explorers name, before a full node's chain."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import TickerServer
from node_till import Chain, NodeTill, open_chain, open_node_till


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with open_chain() as opened:
        yield opened


@pytest.fixture
def till(tmp_path: Path, ticker: TickerServer, chain: Chain) -> Iterator[NodeTill]:
    with open_node_till(tmp_path, ticker, chain, BTCPAY_BLOCKS="named") as opened:
        yield opened


def test_only_blocks_that_concern_us_are_read(till: NodeTill) -> None:
    invoice = till.shop.invoice()
    till.mine(3)
    till.pay(invoice)
    till.mine(3)
    run = till.check()
    assert (run.changed, run.blocks, run.behind) == ({invoice["id"]: "paid"}, 1, 0)


def test_a_spend_in_a_block_that_was_read_before_the_payments_block_is_found(
    till: NodeTill,
) -> None:
    """One invoice's history names the block; the other's, asked just before, names none yet."""
    moved = till.shop.invoice()
    till.check()
    txid = till.pay(moved)
    till.mine()
    till.clock.move(minutes=1)
    other = till.shop.invoice()
    till.pay(other)
    till.sweep(moved, txid)
    till.mine()
    assert till.check().changed == {other["id"]: "paid"}
    till.clock.move(minutes=10)
    assert till.check().changed == {moved["id"]: "paid"}
    till.clock.move(minutes=10)
    run = till.check()
    assert (run.blocks, till.balance()) == (1, (other["amount_sats"],) * 2)
    till.clock.move(minutes=10)
    assert till.check().blocks == 0


def test_of_many_payments_to_one_address_none_is_left_out(till: NodeTill) -> None:
    """Explorers show 25 confirmed transactions at a time."""
    invoice = till.shop.invoice()
    for _ in range(3):
        for _ in range(25):
            till.pay(invoice, 1_000)
        till.mine()
    till.check()
    assert till.balance() == (75_000, 75_000)
