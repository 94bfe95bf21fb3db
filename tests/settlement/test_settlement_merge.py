"""`merge`: what we know after a look at an address, and what an empty answer must not undo."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from btcpay.settlement.decide import decide
from btcpay.settlement.merge import merge
from btcpay.settlement.values import Block, Invoice, Output, Rules, SeenOutput

TIP = 1010
FIRST = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
NOW = FIRST + timedelta(minutes=5)
LATER = NOW + timedelta(minutes=5)
BLOCK = Block(1000, "block1000", FIRST)
RIVAL = Block(1000, "rival1000", FIRST)

SHOWN_WAITING = SeenOutput("aa", 0, 7, block=None, spent_height=None)
SHOWN = replace(SHOWN_WAITING, block=BLOCK)
SHOWN_SPENT = replace(SHOWN, spent_height=1005)
SHOWN_MOVED = replace(SHOWN, block=RIVAL)
WAITING = Output("aa", 0, 7, first_seen_at=FIRST, seen_waiting=True)
CONFIRMED = replace(WAITING, block=BLOCK)
IN_ITS_BLOCK = replace(CONFIRMED, seen_waiting=False)
VANISHED = replace(WAITING, vanished=True)
PROVEN = replace(CONFIRMED, proven=True)
DOUBTED = replace(PROVEN, doubted=True)
CREDITED = replace(CONFIRMED, credited=True, settles=True)


@pytest.mark.parametrize(
    ("known", "seen", "expected"),
    [
        pytest.param([], [], [], id="nothing known, nothing shown"),
        pytest.param(
            [],
            [SHOWN_WAITING],
            [replace(WAITING, first_seen_at=NOW)],
            id="new and waiting: first seen now",
        ),
        pytest.param(
            [],
            [SHOWN_SPENT],
            [replace(IN_ITS_BLOCK, first_seen_at=NOW, spent_height=1005)],
            id="new, confirmed and spent already: known with all of it",
        ),
        pytest.param([WAITING], [SHOWN_WAITING], [WAITING], id="still waiting: nothing changes"),
        pytest.param(
            [WAITING], [SHOWN], [CONFIRMED], id="confirmed: in its block, first seen as before"
        ),
        pytest.param([WAITING], [], [VANISHED], id="waited and is not shown any more: vanished"),
        pytest.param([VANISHED], [], [VANISHED], id="vanished stays vanished"),
        pytest.param([VANISHED], [SHOWN_WAITING], [WAITING], id="back again in the mempool"),
        pytest.param([VANISHED], [SHOWN], [CONFIRMED], id="vanished, and then in a block"),
        pytest.param([PROVEN], [], [DOUBTED], id="proven and not shown: doubted, block kept"),
        pytest.param([CONFIRMED], [], [VANISHED], id="only said to be confirmed, not shown: gone"),
        pytest.param([PROVEN], [SHOWN], [PROVEN], id="proven and shown again: still proven"),
        pytest.param(
            [replace(PROVEN, coinbase=True, position=0)],
            [SHOWN],
            [replace(PROVEN, coinbase=True, position=0)],
            id="proven to be a coinbase: still one",
        ),
        pytest.param(
            [replace(PROVEN, coinbase=True, position=0)],
            [SHOWN_MOVED],
            [replace(CONFIRMED, block=RIVAL)],
            id="proven to be a coinbase, and now in another block: to be proven there",
        ),
        pytest.param(
            [PROVEN],
            [SHOWN_MOVED],
            [replace(CONFIRMED, block=RIVAL)],
            id="proven and now in another block: to be proven there",
        ),
        pytest.param(
            [CONFIRMED],
            [SHOWN_WAITING],
            [WAITING],
            id="no payment yet and waiting again: the block is gone",
        ),
        pytest.param(
            [CONFIRMED],
            [SHOWN_MOVED],
            [replace(CONFIRMED, block=RIVAL)],
            id="no payment yet and in another block: there now",
        ),
        pytest.param(
            [CONFIRMED],
            [SHOWN_SPENT],
            [replace(CONFIRMED, spent_height=1005)],
            id="spent: known with the block of its spending",
        ),
        pytest.param(
            [IN_ITS_BLOCK],
            [SHOWN_WAITING],
            [replace(IN_ITS_BLOCK, block=None)],
            id="seen first in a block, and then waiting: still not seen before its block",
        ),
        pytest.param([DOUBTED], [SHOWN], [PROVEN], id="doubted and shown again: trusted again"),
        pytest.param([CREDITED], [], [CREDITED], id="an empty answer leaves a payment as it is"),
        pytest.param(
            [CREDITED],
            [SHOWN_WAITING],
            [CREDITED],
            id="an answer that shows a payment waiting does not undo it",
        ),
        pytest.param(
            [CREDITED],
            [SHOWN_SPENT],
            [replace(CREDITED, spent_height=1005)],
            id="a payment's coin is spent",
        ),
        pytest.param(
            [WAITING],
            [replace(SHOWN_WAITING, vout=1)],
            [VANISHED, replace(WAITING, vout=1, first_seen_at=NOW)],
            id="another output of the same transaction is another output",
        ),
        pytest.param(
            [WAITING, replace(WAITING, txid="bb")],
            [SHOWN],
            [CONFIRMED, replace(VANISHED, txid="bb")],
            id="one of two confirms, the other was replaced by it",
        ),
    ],
)
def test_merge(known, seen, expected):
    assert merge(known, seen, TIP, NOW) == expected


@pytest.mark.parametrize("known", [WAITING, PROVEN, DOUBTED, CREDITED, VANISHED])
@pytest.mark.parametrize("seen", [[], [SHOWN_WAITING], [SHOWN]])
def test_nothing_was_seen_later_than_now(known, seen):
    earlier = FIRST - timedelta(hours=1)
    (after,) = merge([known], seen, TIP, earlier)
    assert after.first_seen_at == earlier


def test_an_empty_answer_between_two_full_ones_leaves_no_trace():
    after = merge(merge([PROVEN], [], TIP, NOW), [SHOWN], TIP, LATER)
    assert after == [PROVEN]


def test_the_known_is_not_changed_in_place():
    known = [WAITING]
    merge(known, [SHOWN], TIP, NOW)
    assert known == [WAITING]


def test_money_that_was_confirmed_is_missed_after_an_empty_answer_but_the_invoice_lives():
    invoice = Invoice("inv", "open", 7, FIRST, NOW)
    doubted = merge([PROVEN], [], TIP, LATER)
    verdict = decide(invoice, doubted, 1000, LATER, Rules(1, Decimal(0)), LATER)
    assert (verdict.status, verdict.receipts, verdict.received_sats) == ("open", (), 7)
