"""Thousands of small outputs to one address: what is done grows as they do, and no faster.

Counted are the steps of the program and of SQLite, which no busy machine changes.
"""

import sys
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial

import pytest

from btcpay.bitcoin.tx import TxOut
from btcpay.check.apply import apply
from btcpay.check.facts import facts_of
from btcpay.check.undo import undo_above
from btcpay.proofs.block import prove_block
from btcpay.sandbox.node.script import script_of
from btcpay.settlement.values import Block, Scan, SeenOutput
from tests.support.blocks import block_of, coinbase, hash_of, payment

FEW = 100
MANY = 400
MOST = 5  # times the work for four times as many; each with each would be sixteen
Shape = Callable[[int], list[tuple[str, int]]]
SHAPES: dict[str, Shape] = {
    "a transaction each": lambda count: [(f"{n:064x}", 0) for n in range(count)],
    "one transaction": lambda count: [("ab" * 32, n) for n in range(count)],
}


@contextmanager
def steps(shop):
    """In the list's place 0 the lines of Python that run meanwhile, in 1 hundreds of SQLite's."""
    counted = [0, 0]

    def line(_frame, event, _arg):
        counted[0] += event == "line"
        return line

    def hundred():
        counted[1] += 1
        return 0

    database = shop.service.db.connection.connection()
    database.set_progress_handler(hundred, 100)
    before = sys.gettrace()
    sys.settrace(line)
    try:
        yield counted
    finally:
        sys.settrace(before)
        database.set_progress_handler(None, 100)


def look(shop, invoice, keys, block):
    """Applies news of these outputs: the mempool shows them all, or a block has them."""
    seen = [
        SeenOutput(
            txid,
            vout,
            330,
            block,
            1 + place if block else None,
            inputs=("ff" * 32 + ":0",),
        )
        for place, (txid, vout) in enumerate(keys)
    ]
    now = shop.clock()
    db = shop.service.db
    scan = Scan(now, 100, waiting=seen, absent_is_gone=True)
    if block:
        scan = Scan(now, 100, confirmed=seen, proofs={txid: "{}" for txid, _ in keys})
    apply(db, shop.service.settings, {invoice["id"]: scan}, now)


def undone(shop):
    with shop.service.db.write():
        undo_above(shop.service.db, shop.service.settings, 99, shop.clock())


def work(shop, keys):
    """Steps of each part of an address's life, by its name."""
    invoice = shop.invoice(1_000_000)
    block = Block(100, "0b" * 32, shop.clock())
    path = f"/pay/{invoice['id']}/status"
    found = {}
    for name, act in {
        "seen": lambda: look(shop, invoice, keys, None),
        "vanished": lambda: look(shop, invoice, [], None),
        "seen again": lambda: look(shop, invoice, keys, None),
        "confirmed": lambda: look(shop, invoice, keys, block),
        "polled": lambda: shop.client.get(path),
        "undone": lambda: undone(shop),
    }.items():
        with steps(shop) as counted:
            act()
        found[name] = counted
    return found


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_four_times_the_outputs_are_four_times_the_work(shop, shape):
    work(shop, SHAPES[shape](2))  # what is only done once is done
    few, many = (work(shop, SHAPES[shape](count)) for count in (FEW, MANY))
    for name, counted in few.items():
        grown = [
            after / max(1, before)
            for before, after in zip(counted, many[name], strict=True)
        ]
        assert max(grown) < MOST, (name, grown)


def read(shop, txs, outputs):
    """Steps of reading a block in which so many transactions pay as many outputs to one address."""
    dust = [TxOut(330, script_of(shop.invoice()["deposit_address"]))] * outputs
    raw = block_of(
        [coinbase(), *(payment(number, *dust) for number in range(1, 1 + txs))]
    )
    block = prove_block(raw, hash_of(raw))
    new = partial(Scan, shop.clock(), 100)
    with steps(shop) as counted:
        (facts,) = facts_of(shop.service.db, "regtest", 100, block, new).values()
    assert len(facts.confirmed) == txs * outputs
    return counted


@pytest.mark.parametrize("shape", SHAPES)
def test_a_block_with_four_times_the_outputs_is_four_times_the_work(shop, shape):
    few, many = (
        read(shop, *((count, 1) if shape == "a transaction each" else (1, count)))
        for count in (FEW, MANY)
    )
    assert (
        max(after / max(1, before) for before, after in zip(few, many, strict=True))
        < MOST
    )


@pytest.mark.parametrize("usd", [25, 1_000_000], ids=["paid", "open"])
@pytest.mark.parametrize("has_vanished", [True, False], ids=["vanished", "in a block"])
def test_who_looks_at_a_page_reads_no_single_output(shop, has_vanished, usd):
    """Also at the first look after a change."""
    polled = []
    block = Block(100, "0b" * 32, shop.clock())
    for count in (1, 200, MANY):  # what is only done once is done with the first
        invoice = shop.invoice(usd)
        keys = SHAPES["one transaction"](count)
        look(shop, invoice, keys, None)
        look(shop, invoice, *(([], None) if has_vanished else (keys, block)))
        paths = [f"/pay/{invoice['id']}{rest}" for rest in ("/status", "")]
        with steps(shop) as counted:
            for path in paths:
                shop.client.get(path)
        polled.append(counted)
    _, (few_lines, few_hundreds), (many_lines, many_hundreds) = polled
    assert (
        many_lines - few_lines < 1_000
    )  # by the code that is drawn; 200 outputs are 4,000
    # An output that vanished since is looked for in an index, by some five steps an output; what
    # is beside these may tip the last hundred.
    assert many_hundreds - few_hundreds <= (2 if has_vanished else 21)
