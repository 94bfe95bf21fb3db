"""`merge`: what we know after news of an address: a block's word stands, a mempool's never does."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from btcpay.settlement.merge import merge
from btcpay.settlement.settle import Change
from btcpay.settlement.values import Block, Output, Scan, SeenOutput

TIP = 1010
FIRST = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
NOW = FIRST + timedelta(minutes=5)
BLOCK = Block(1000, "block1000", FIRST)
COINS_OF_AA = {("aa", 0): 1005}

SHOWN = SeenOutput("aa", 0, 7, inputs=("ff:1",))
PROVEN = SeenOutput("aa", 0, 7, BLOCK, 3)
WAITING = Output("aa", 0, 7, first_seen_at=FIRST, seen_waiting=True, inputs=("ff:1",))
CONFIRMED = replace(WAITING, inputs=(), block=BLOCK, position=3)
IN_ITS_BLOCK = replace(CONFIRMED, seen_waiting=False)
SPENT = replace(CONFIRMED, spent_height=1005)
VANISHED = replace(WAITING, vanished_at=FIRST)
GONE_NOW = replace(WAITING, vanished_at=NOW)
REPLACED = replace(VANISHED, replaced_height=1000)
CREDITED = replace(CONFIRMED, credited=True, settles=True)
# As a reorganisation leaves them: in no block any more.
WAITS_AGAIN = replace(WAITING, inputs=())
NEVER_SEEN_WAITING = replace(WAITS_AGAIN, seen_waiting=False)


def mempool(*shown, absent_is_gone=True):
    """A look at the mempool; `absent_is_gone`: its list is whole, and every block is read."""
    return Scan(NOW, TIP, waiting=shown, absent_is_gone=absent_is_gone)


def block(*paid, **facts):
    return Scan(NOW, TIP, confirmed=paid, **facts)


def row(sentence, known, scan, *expected):
    return pytest.param(known, scan, list(expected), id=sentence)


@pytest.mark.parametrize(
    ("known", "scan", "expected"),
    [
        row("nothing known, nothing shown", [], mempool()),
        row("new and waiting: first seen now", [], mempool(SHOWN),
            replace(WAITING, first_seen_at=NOW)),
        row("new and in a block: first seen now, not waiting", [], block(PROVEN),
            replace(IN_ITS_BLOCK, first_seen_at=NOW)),
        row("paid and spent in one block: known with both", [], block(PROVEN, spent=COINS_OF_AA),
            replace(IN_ITS_BLOCK, first_seen_at=NOW, spent_height=1005)),
        row("still waiting: nothing changes", [WAITING], mempool(SHOWN), WAITING),
        row("a fee that one explorer said stays where another says none",
            [replace(WAITING, feerate=1_500)], mempool(SHOWN), replace(WAITING, feerate=1_500)),
        row("a fee that is said counts", [WAITING], mempool(replace(SHOWN, feerate=1_500)),
            replace(WAITING, feerate=1_500)),
        row("waited and is in a block: there, and first seen as before", [WAITING], block(PROVEN),
            CONFIRMED),
        row("another output of the same transaction is another output", [WAITING],
            mempool(replace(SHOWN, vout=1)),
            GONE_NOW, replace(WAITING, vout=1, first_seen_at=NOW)),
        # Outputs that are not shown.
        row("waited and is not shown: vanished", [WAITING], mempool(), GONE_NOW),
        row("not shown while a block is not read: it may be there", [WAITING],
            mempool(absent_is_gone=False), WAITING),
        row("the mempool was not asked: nothing vanishes", [WAITING],
            Scan(NOW, TIP, absent_is_gone=True), WAITING),
        row("a block that does not have it says nothing of it", [WAITING],
            block(replace(PROVEN, txid="bb")),
            WAITING, replace(IN_ITS_BLOCK, txid="bb", first_seen_at=NOW)),
        row("vanished stays so, since when it vanished", [VANISHED], mempool(), VANISHED),
        row("in a block and not shown: stands", [CONFIRMED], mempool(), CONFIRMED),
        row("a payment and not shown: stands", [CREDITED], mempool(), CREDITED),
        # Outputs that come again.
        row("vanished and shown: seen again", [VANISHED], mempool(SHOWN), WAITING),
        row("vanished and shown by a list that is not whole: seen again", [VANISHED],
            mempool(SHOWN, absent_is_gone=False), WAITING),
        row("vanished, and then in a block", [VANISHED], block(PROVEN), CONFIRMED),
        # Whatever the mempool says.
        row("in a block and shown as waiting: stays there", [CONFIRMED], mempool(SHOWN), CONFIRMED),
        row("in a block and shown with another amount: as it was proven", [CONFIRMED],
            mempool(replace(SHOWN, amount_sats=8)), CONFIRMED),
        row("a payment that is shown as waiting: stays one", [CREDITED], mempool(SHOWN), CREDITED),
        row("moved on, and shown as waiting: stays so", [SPENT], mempool(SHOWN), SPENT),
        row("shown with another amount than in the block: the block's", [replace(WAITING,
            amount_sats=8)], block(PROVEN), CONFIRMED),
        row("shown with other inputs than before: the newest word", [WAITING],
            mempool(replace(SHOWN, inputs=("ee:0",))), replace(WAITING, inputs=("ee:0",))),
        row("shown with another amount than before: the newest word", [WAITING],
            mempool(replace(SHOWN, amount_sats=8)), replace(WAITING, amount_sats=8)),
        # Replaced.
        row("a block spends its inputs otherwise: gone", [WAITING], block(replaced={"aa": 1000}),
            replace(GONE_NOW, replaced_height=1000)),
        row("vanished, and a block spends its inputs otherwise: gone since it vanished", [VANISHED],
            block(replaced={"aa": 1000}), REPLACED),
        row("replaced, and a mempool still shows it: history", [REPLACED], mempool(SHOWN),
            REPLACED),
        row("replaced, and in a block after all: there", [REPLACED], block(PROVEN), CONFIRMED),
        row("said to be replaced by the block that has it: there", [WAITING],
            block(PROVEN, replaced={"aa": 1000}), CONFIRMED),
        row("in a block already: not replaced", [CONFIRMED], block(replaced={"aa": 1001}),
            CONFIRMED),
        row("the block that replaced it is undone, and it is shown: seen again",
            [replace(REPLACED, replaced_height=None)], mempool(SHOWN), WAITING),
        # After a reorganisation.
        row("waits again, and is shown: with what it spends", [WAITS_AGAIN], mempool(SHOWN),
            WAITING),
        row("seen first in a block, and then waiting: still not seen before its block",
            [NEVER_SEEN_WAITING], mempool(SHOWN), replace(NEVER_SEEN_WAITING, inputs=("ff:1",))),
        row("waits again, and is in another block: there", [WAITS_AGAIN],
            block(replace(PROVEN, block=Block(1001, "other", NOW), position=0)),
            replace(CONFIRMED, block=Block(1001, "other", NOW), position=0)),
        # Spends.
        row("its coin is spent", [CREDITED], block(spent=COINS_OF_AA),
            replace(CREDITED, spent_height=1005)),
        row("a coin of another transaction is spent", [CREDITED], block(spent={("bb", 0): 1005}),
            CREDITED),
        row("another coin of the transaction is spent", [CREDITED], block(spent={("aa", 1): 1005}),
            CREDITED),
        row("one of two confirms, the other is replaced by it",
            [WAITING, replace(WAITING, txid="bb")], block(PROVEN, replaced={"bb": 1000}),
            CONFIRMED, replace(GONE_NOW, txid="bb", replaced_height=1000)),
    ],
)  # fmt: skip
def test_a_scan_merged_once_or_twice_leaves_the_same_outputs(known, scan, expected):
    before = list(known)
    assert merge(known, scan, NOW) == expected
    assert known == before
    assert merge(expected, scan, NOW) == expected


@pytest.mark.parametrize("known", [WAITING, CONFIRMED, CREDITED, VANISHED, REPLACED])
@pytest.mark.parametrize("scan", [mempool(), mempool(SHOWN), block(PROVEN)])
def test_nothing_was_seen_and_nothing_vanished_later_than_now(known, scan):
    earlier = FIRST - timedelta(hours=1)
    (after,) = merge([known], replace(scan, asked_at=earlier), earlier)
    assert after.first_seen_at == earlier
    assert after.vanished_at in (None, earlier)


def test_what_a_block_brought_while_the_mempool_was_asked_was_not_seen_before_that():
    """A look is applied after the blocks that were read meanwhile: it is older than they."""
    asked_at = NOW - timedelta(seconds=30)
    known = [replace(IN_ITS_BLOCK, first_seen_at=NOW)]
    assert merge(known, replace(mempool(), asked_at=asked_at), NOW) == known


def test_what_the_mempool_showed_before_its_block_was_read_was_seen_then():
    asked_at = NOW - timedelta(seconds=30)
    known = [replace(IN_ITS_BLOCK, first_seen_at=NOW)]
    after = merge(known, replace(mempool(SHOWN), asked_at=asked_at), NOW)
    assert after == [replace(IN_ITS_BLOCK, first_seen_at=asked_at)]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        pytest.param(None, WAITING, "seen", id="waits"),
        pytest.param(None, CONFIRMED, "seen", id="in a block when it was first seen"),
        pytest.param(WAITING, CONFIRMED, "moved", id="from the mempool into a block"),
        pytest.param(WAITING, GONE_NOW, "vanished", id="vanished"),
        pytest.param(VANISHED, WAITING, "seen again", id="waits again"),
        pytest.param(VANISHED, CONFIRMED, "seen again", id="vanished, and in a block"),
        pytest.param(VANISHED, REPLACED, None, id="told when it vanished"),
        pytest.param(
            CREDITED, replace(CREDITED, spent_height=1005), "spent", id="moved on"
        ),
        pytest.param(
            WAITING, replace(WAITING, inputs=()), None, id="what it spends is not told"
        ),
    ],
)
def test_the_history_tells_what_has_changed(before, after, kind):
    assert Change(before, after).kind == kind
