"""Following the best chain: by few calls, over gaps and kills, by work and not by height."""

import pytest

from btcpay.bitcoin.header import parse_header
from btcpay.bitcoin.tx import TxOut
from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.follow import Follower
from btcpay.check.undo import undo_above
from btcpay.sandbox.node.block import BITS
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.wallet import double_spends
from storage.queries import blocks
from tests.support.fake_esplora import say
from tests.support.rival import HARDER, Rival


class Killed(BaseException):
    """The process ends here."""


class Dying(Explorers):
    """Is asked so many questions, and then the process ends."""

    left = 0

    def ask(self, question, round_robin=False):
        if not self.left:
            raise Killed
        self.left -= 1
        return super().ask(question, round_robin)


def hashes(till):
    """The chain as the shop keeps it; each header is linked to the one below."""
    rows = till.shop.service.db.rows(blocks.ABOVE, height=-1)
    for below, row in zip(rows, rows[1:], strict=False):
        assert parse_header(bytes(row.header)).previous == below.hash
        assert row.height == below.height + 1
    return {row.height: row.hash for row in rows}


def is_at(till, best):
    """True if the shop keeps this chain up to its tip, from its first header on."""
    ours = hashes(till)
    return ours == {height: best[height] for height in range(min(ours), len(best))}


def is_whole(till):
    """True if the shop keeps the sandbox's chain, and has read every block of it."""
    unread = till.shop.service.db.get(blocks.UNREAD)[0]
    return unread == 0 and is_at(till, till.sandbox.chain.ledger.hashes)


def pay_with(till, coin, invoice):
    """Pays it with this coin alone, so that no other payment depends on it."""
    outputs = [TxOut(invoice["amount_sats"], script_of(invoice["deposit_address"]))]
    till.sandbox.chain.accept(
        till.sandbox.wallet.build([coin], outputs, 2_000), till.now
    )


def test_a_new_tip_takes_its_hash_its_header_and_its_block(till):
    till.mine()
    till.liar.asked.clear()
    report = till.check()
    tip = till.sandbox.chain.ledger.tip.hash
    asked = ["/blocks/tip/hash", f"/block/{tip}/header", f"/block/{tip}/raw"]
    assert till.liar.asked == asked and report.calls == 3 and report.blocks_read == 1
    assert is_whole(till)


@pytest.mark.parametrize("gap", [2, 10, 11, 60])
def test_a_gap_is_followed_page_by_page(till, gap):
    till.mine(gap)
    till.liar.asked.clear()
    report = till.check()
    assert report.complete and report.blocks_read == gap and is_whole(till)
    pages = till.liar.count("^/blocks")
    assert pages <= gap / 10 + 4


@pytest.mark.parametrize("gap", [11, 25])
def test_a_run_that_is_killed_anywhere_in_a_gap_is_continued(till, gap):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine(gap)
    kills = 0
    while True:
        dying = till.explorers(kind=Dying)
        dying.left = 3
        try:
            report = till.checker(explorers=dying).run()
        except Killed:
            kills += 1
            hashes(till)
        else:
            break
    assert report.complete and kills > gap / 10
    assert is_whole(till) and till.look(invoice)["status"] == "paid"
    assert len(till.payments()) == 1


@pytest.mark.parametrize("depth", [1, 2, 9, 10, 11, 12, 25])
def test_a_reorganisation_of_any_depth_is_followed_and_a_double_spend_undone(
    lied_to, depth
):
    till = lied_to()
    paid = till.shop.invoice()
    kept = till.shop.invoice()
    till.clock.move(hours=1)
    till.mine_and_check(30)
    first, second = till.sandbox.wallet.coins()[:2]
    pay_with(till, first, paid)
    pay_with(till, second, kept)
    till.mine(depth)
    assert till.check().new_statuses == {paid["id"]: "paid", kept["id"]: "paid"}
    taken_back = double_spends(till.sandbox.wallet, depth)[:1]
    till.sandbox.chain.reorganise(depth, till.now, taken_back)
    assert till.check().complete and is_whole(till)
    assert {till.look(one)["status"] for one in (paid, kept)} == {"open"}
    assert till.mine_and_check().new_statuses == {kept["id"]: "paid"}
    assert is_whole(till) and till.look(paid)["status"] == "open"
    assert till.balance() == (kept["amount_sats"],) * 2


@pytest.mark.parametrize(("depth", "more"), [(1, 15), (12, 10), (25, 30)])
def test_a_fork_within_a_gap_is_followed(till, depth, more):
    till.clock.move(hours=5)
    till.mine_and_check(30)
    till.sandbox.chain.reorganise(depth, till.now)
    till.mine(more)
    assert till.check().complete and is_whole(till)


def test_a_chain_with_more_blocks_but_less_work_is_not_taken(till):
    hard = Rival(till).add(2, bits=HARDER)  # the work of sixteen
    till.liar.instead = hard
    till.check()
    ours = hashes(till)
    easy = Rival(till).add(15)
    till.liar.instead = easy
    till.check()
    assert hashes(till) == ours and ours[hard.height] == hard.blocks[-1].hash
    easy.add(2)  # seventeen
    assert till.check().complete
    assert hashes(till)[easy.height] == easy.blocks[-1].hash


def test_a_chain_of_fewer_blocks_and_more_work_is_taken(till):
    fork = Rival(till)
    till.mine_and_check(7)
    till.liar.instead = fork.add(1, bits=HARDER)
    report = till.check()
    assert report.complete and is_at(till, [block.hash for block in fork.blocks])
    till.liar.instead = lambda _: None
    till.mine(2)  # nine against the work of eight
    assert till.check().complete and is_whole(till)


@pytest.mark.parametrize("length", [1, 12])
def test_a_chain_of_equal_work_is_not_taken(till, length):
    fork = Rival(till).add(length)
    till.mine(length)
    till.check()
    ours = hashes(till)
    till.liar.instead = fork
    report = till.check()
    assert hashes(till) == ours and report.complete
    fork.add()
    till.check()
    assert is_at(till, [block.hash for block in fork.blocks])


def test_a_fork_below_our_first_header_is_refused_and_told(till, caplog):
    first = min(hashes(till))
    ours = hashes(till)
    till.liar.instead = Rival(till, first - 1).add(60)
    report = till.check()
    assert not report.complete and report.chain_failed and hashes(till) == ours
    assert f"lacks our block {first}, the first that we keep" in caplog.text
    till.liar.instead = Rival(till, first).add(60)
    assert till.check().complete


@pytest.mark.parametrize("behind", [1, 2, 3])
def test_an_explorer_that_is_behind_takes_nothing_away(till, behind, caplog):
    old = Rival(till)
    till.mine(behind)
    till.check()
    ours = hashes(till)
    till.liar.instead = old
    report = till.check()
    assert hashes(till) == ours
    assert report.complete == (behind <= 2)
    if behind == 3:
        assert "is 3 blocks behind what was proven to us" in caplog.text


def test_an_explorer_that_stands_on_a_shorter_fork_is_behind_too(till):
    """Its newest block is none of ours, and nobody has built on it for long."""
    fork = Rival(till).add(1)
    assert till.mine_and_check(6).complete
    till.liar.instead = fork
    assert not till.mine_and_check().complete
    report = till.check(till.liar.root, till.liar.honest)
    assert report.complete and is_whole(till)


def test_of_two_explorers_on_different_forks_the_one_with_more_work_counts(
    till, open_liar
):
    second = open_liar(till)
    left = Rival(till).add(3)
    right = Rival(till).add(4)
    till.liar.instead = left
    second.instead = right
    for _ in range(2):
        till.check(till.liar.root, second.root)
        assert is_at(till, [block.hash for block in right.blocks])
    left.add(2)
    till.check(till.liar.root, second.root)
    assert is_at(till, [block.hash for block in left.blocks])


def test_a_false_height_of_one_explorer_does_not_keep_us_from_the_next(till, open_liar):
    """It shows ten blocks, says that there are millions, and cannot show them."""
    second = open_liar(till)
    till.mine(25)

    def lie(shown):
        return [
            block | {"height": 90_000_000 - number}
            for number, block in enumerate(shown)
        ]

    till.liar.lies = {"^/blocks$": lie}
    till.liar.instead = lambda path: say("no", 404) if "/blocks/90" in path else None
    report = till.check(till.liar.root, second.root)
    assert report.complete and is_whole(till)


def test_a_run_that_knows_an_older_chain_changes_nothing(till):
    """Another run has followed a reorganisation after this one was told of its branch."""
    db = till.shop.service.db
    network = till.settings.network

    def undo(height):
        undo_above(db, till.settings, height, till.clock())

    follower = Follower(db, network, till.explorers(), undo)
    fork = till.sandbox.chain.ledger.height
    till.mine_and_check(2)
    late = Rival(till).add(3)
    till.sandbox.chain.reorganise(2, till.now)
    till.check()
    ours = hashes(till)
    follower._adopt(fork + 2, [block.header for block in late.blocks[-3:]])
    assert hashes(till) == ours and is_whole(till) and late.height == fork + 5


def test_an_explorer_that_leads_nowhere_costs_little(till):
    """Endless headers that are not ours, of no work at all: whoever shows them is left."""
    fork = Rival(till, 1).add(400, bits=BITS)
    till.liar.instead = fork
    till.liar.asked.clear()
    assert not till.check().complete
    assert till.liar.count("^/blocks") <= 30
