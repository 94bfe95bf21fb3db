"""Which output sends which refund: a table of cases, each a sentence."""

import random

import pytest

from btcpay.parts.refunds.decide import (
    MOST_UNUSED,
    WATCHED_BLOCKS,
    decide,
    worth_keeping,
)
from btcpay.parts.refunds.models import Refund, RefundOutput
from storage.statement import blank


def wanted(id, sats, above_height=100, named=None, sent=None):
    """A refund to an address that was given when that block was our tip.

    `named`: the output of which the merchant says that it was this one; `sent`: that which sent it.
    """
    named_txid, named_vout = (named.txid, named.vout) if named else (None, None)
    tx_hash, vout = (sent.txid, sent.vout) if sent else (None, None)
    of = {"id": id, "amount_sats": sats, "above_height": above_height}
    named_by = {"named_txid": named_txid, "named_vout": named_vout}
    return blank(Refund, **of, **named_by, tx_hash=tx_hash, vout=vout)


def paid(sats, height=101, position=1, vout=0, txid=None):
    """An output; its transaction is named after its place."""
    at = {
        "block_height": height,
        "position": position,
        "txid": txid or f"{height}/{position}",
    }
    return blank(RefundOutput, amount_sats=sats, vout=vout, **at)


FIRST = wanted("first", 5_000)
SECOND = wanted("second", 9_000)
TWIN = wanted("twin", 5_000)

FEE = paid(4_700, 103)
OLD = (
    paid(5_000, 0, 7, txid="a"),
    paid(5_000, 0, 2, txid="b"),
)  # of a chain that was given up


def row(sentence, refunds, outputs, sent, again=()):
    """`sent`: by a refund's id the index of its output; `again`: the indexes of those beside."""
    return pytest.param(refunds, outputs, sent, set(again), id=sentence)


CASES = [
    row("nothing was paid: it waits", [FIRST], [], {}),
    row("short by one satoshi: it waits", [FIRST], [paid(4_999)], {}),
    row("paid to the satoshi: sent", [FIRST], [paid(5_000)], {"first": 0}),
    row("paid a satoshi more than asked, as by a wallet that rounds: it waits", [FIRST],
        [paid(5_001)], {}),
    row("a miner's 25 bitcoin come first: the refund is sent by its own", [FIRST],
        [paid(2_500_000_000, 101, 0), paid(5_000, 102)], {"first": 1}),
    row("another's money in the same block, before it and after it", [FIRST],
        [paid(4_000, 101, 1), paid(5_000, 101, 2), paid(9_000, 101, 3)], {"first": 1}),
    row("in the block that we had when the address was given: another's money", [FIRST],
        [paid(5_000, 100)], {}),
    row("in the next block: sent", [FIRST], [paid(5_000, 101)], {"first": 0}),
    row("the first of two transactions sends it, whichever is read first", [FIRST],
        [paid(5_000, 103), paid(5_000, 102)], {"first": 1}, [0]),
    row("the first in the block's order", [FIRST], [paid(5_000, 101, 9), paid(5_000, 101, 2)],
        {"first": 1}, [0]),
    row("two refunds, one output: the oldest is sent", [FIRST, TWIN], [paid(5_000)], {"first": 0}),
    row("two refunds, one output of the sum of both: neither is sent", [FIRST, SECOND],
        [paid(14_000)], {}),
    row("two refunds, two outputs: both are sent", [FIRST, TWIN], [paid(5_000), paid(5_000, 102)],
        {"first": 0, "twin": 1}),
    row("a batch pays both, in the other order", [FIRST, SECOND],
        [paid(9_000, vout=0), paid(5_000, vout=1)], {"first": 1, "second": 0}),
    row("the larger of two is paid first: neither is paid again", [FIRST, SECOND],
        [paid(9_000), paid(5_000, 102)], {"first": 1, "second": 0}),
    row("one transaction with two fitting outputs: the second was sent again", [FIRST],
        [paid(5_000, vout=0), paid(5_000, vout=1)], {"first": 0}, [1]),
    row("sent twice, a day apart: the second was sent again", [FIRST],
        [paid(5_000), paid(5_000, 245)], {"first": 0}, [1]),
    row("sent twice, the last block of a week", [FIRST],
        [paid(5_000), paid(5_000, 101 + WATCHED_BLOCKS)], {"first": 0}, [1]),
    row("the same sum after more than a week is no business of ours", [FIRST],
        [paid(5_000), paid(5_000, 102 + WATCHED_BLOCKS)], {"first": 0}),
    row("another sum to the same address is no business of ours", [FIRST],
        [paid(5_000), paid(5_001, 102)], {"first": 0}),
    row("the address was given again for a later refund: the earlier payment does not send it",
        [FIRST, wanted("later", 5_000, 110)], [paid(5_000, 105)], {"first": 0}),
    row("the later refund is sent by the next payment", [FIRST, wanted("later", 5_000, 110)],
        [paid(5_000, 105), paid(5_000, 111)], {"first": 0, "later": 1}),
    row("the address of the older refund was given later: the younger one is sent",
        [wanted("older", 5_000, 110), FIRST], [paid(5_000, 105)], {"first": 0}),
    row("the merchant says that a smaller one was it: sent", [wanted("first", 5_000, named=FEE)],
        [FEE], {"first": 0}),
    row("what he has named is no other refund's, even of its sum",
        [wanted("first", 5_000, named=FEE), wanted("other", 4_700)], [FEE, paid(4_700, 104)],
        {"first": 0, "other": 1}),
    row("what he has named left the chain: it waits", [wanted("first", 5_000, named=FEE)], [], {}),
    row("what he has named left the chain, and the sum came after all: sent by that",
        [wanted("first", 5_000, named=FEE)], [paid(5_000, 104)], {"first": 0}),
    row("the sum came too, after what he has named: sent again",
        [wanted("first", 5_000, named=FEE)], [FEE, paid(5_000, 104)], {"first": 0}, [1]),
    row("the sum had come before what he has named: sent again, in whatever order they were read",
        [wanted("first", 5_000, named=FEE)], [FEE, paid(5_000, 101)], {"first": 0}, [1]),
    row("a chain was given up: what sent each of two keeps to it until a block has it",
        [wanted("first", 5_000, -1, sent=OLD[0]), wanted("twin", 5_000, -1, sent=OLD[1])],
        [paid(5_000, 105, 7, txid="a"), OLD[1]], {"first": 0, "twin": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("refunds", "outputs", "sent", "again"), CASES)
def test_an_output_sends_the_refund_that_it_fits(refunds, outputs, sent, again):
    decision = decide(refunds, outputs)
    assert decision.sent == {id: outputs[index] for id, index in sent.items()}
    assert set(decision.repeated) == {outputs[index] for index in again}


@pytest.mark.parametrize("seed", range(20))
def test_the_order_in_which_blocks_are_read_changes_nothing(seed):
    chance = random.Random(seed)
    refunds = [
        wanted(str(n), chance.randrange(1, 6), 100 + chance.randrange(4))
        for n in range(6)
    ]
    outputs = [
        paid(
            chance.randrange(1, 6), 100 + chance.randrange(6), chance.randrange(3), vout
        )
        for vout in range(8)
    ]
    shuffled = chance.sample(outputs, len(outputs))
    assert decide(refunds, outputs) == decide(refunds, shuffled)
    sent = decide(refunds, outputs).sent
    assert len(set(sent.values())) == len(sent)
    for refund in refunds:
        by = sent.get(refund.id)
        assert by is None or by.amount_sats == refund.amount_sats
        assert by is None or by.block_height > refund.above_height


DUST = [(1, vout, 294) for vout in range(3_200)]


@pytest.mark.parametrize(
    ("sums_sats", "outputs", "kept"),
    [
        pytest.param([5_000], [(1, 0, 5_000)], [(1, 0, 5_000)], id="what sends it"),
        pytest.param([294], DUST, DUST[: 1 + MOST_UNUSED], id="dust of the very sum"),
        pytest.param(
            [294, 294, 294], DUST, DUST[: 3 + MOST_UNUSED], id="as many as wait for it"
        ),
        pytest.param([5_000], DUST, DUST[-MOST_UNUSED:], id="dust beside another sum"),
        pytest.param(
            [5_000],
            [*DUST, (2, 0, 4_700), (2, 1, 6_000)],
            [*DUST[1 - MOST_UNUSED :], (2, 0, 4_700), (2, 1, 6_000)],
            id="less by a fee, and rounded, behind much dust",
        ),
        pytest.param([5_000], [], [], id="nothing"),
    ],
)
def test_of_a_block_only_what_refunds_can_use_is_kept(sums_sats, outputs, kept):
    assert worth_keeping(sums_sats, outputs) == kept
