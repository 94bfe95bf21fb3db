"""A chain that stands still, or of which another explorer has more: nothing expires then."""

from dataclasses import replace
from datetime import timedelta

import pytest
from builders import REGTEST
from fake_esplora import LiedTo, say
from rival import HARDER, Rival

from storage.queries import blocks, meta

# As mainnet in this, and as regtest in all else: nobody can mine mainnet's blocks here.
IMPATIENT = replace(REGTEST, tip_max_age=timedelta(hours=2))


@pytest.mark.parametrize(("minutes", "is_stuck"), [(119, False), (120, False), (121, True)])
def test_a_tip_older_than_two_hours_is_an_error_and_nothing_expires(
    till, caplog, minutes, is_stuck
):
    invoice = till.shop.invoice(expires_in_hours=1)
    till.mine()
    till.clock.move(minutes=minutes)
    report = till.check(till.liar.root, network=IMPATIENT)
    assert report.complete != is_stuck
    assert till.look(invoice)["status"] == ("open" if is_stuck else "expired")
    if is_stuck:
        assert report.stuck == "no block has come for 121 minutes" and not report.chain_failed
        assert "nothing expires: no block has come for 121 minutes" in caplog.text
        till.mine()
        assert till.check(till.liar.root, network=IMPATIENT).complete
        assert till.look(invoice)["status"] == "expired"


def test_on_a_test_network_blocks_come_as_they_like(till):
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(days=1)
    assert till.check().complete and till.look(invoice)["status"] == "expired"


def test_what_is_in_a_block_is_settled_even_while_the_chain_stands_still(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.clock.move(hours=5)
    report = till.check(till.liar.root, network=IMPATIENT)
    assert report.stuck and report.changed == {invoice["id"]: "paid"}


def freeze(till: LiedTo) -> Rival:
    """The first explorer shows no block any more that comes from now on."""
    till.liar.instead = Rival(till)
    return till.liar.instead


@pytest.mark.parametrize(("ahead", "follows"), [(1, False), (2, False), (3, True), (40, True)])
def test_another_explorer_that_is_more_than_two_blocks_ahead_is_followed(
    till, open_liar, ahead, follows
):
    second = open_liar(till)
    invoice = till.shop.invoice(expires_in_hours=1)
    freeze(till)
    till.clock.move(minutes=31)
    till.mine(ahead - 1) if ahead > 1 else None
    till.pay(invoice)
    till.mine()
    till.clock.move(minutes=31)
    report = till.check(till.liar.root, second.root)
    if follows:
        top = till.shop.service.db.only(blocks.TOP)
        assert top["hash"] == till.sandbox.chain.ledger.tip.hash
        assert report.complete and report.changed == {invoice["id"]: "paid"}
    else:
        assert report.blocks == 0


def test_a_chain_of_less_work_is_not_followed_and_ours_counts(till, open_liar):
    second = open_liar(till)
    hard = Rival(till).add(1, bits=HARDER)
    till.liar.instead, second.instead = hard, Rival(till).add(7)
    till.check()
    till.clock.move(minutes=31)
    report = till.check(till.liar.root, second.root)
    assert report.complete and second.count("^/blocks/tip/height") == 1
    assert till.shop.service.db.only(blocks.TOP)["hash"] == hard.blocks[-1].hash


@pytest.mark.parametrize("lie", ["height alone", "headers without blocks below"])
def test_blocks_that_cannot_be_shown_are_told_and_nothing_expires(till, open_liar, lie, caplog):
    second = open_liar(till)
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(minutes=61)
    more = Rival(till).add(9)

    def answer(path: str) -> object:
        if path == "/blocks/tip/height":
            return say(str(more.height))
        return say("no", 404) if lie == "height alone" or "/header" in path else more(path)

    second.instead = answer
    report = till.check(till.liar.root, second.root)
    assert not report.complete and "shows 9 blocks more, which cannot be read" in report.stuck
    assert till.look(invoice)["status"] == "open" and report.stuck in caplog.text
    second.instead = lambda _: None
    assert till.check(till.liar.root, second.root).complete
    assert till.look(invoice)["status"] == "expired"


def test_what_was_told_of_more_blocks_holds_for_the_whole_run_and_the_next(till, open_liar):
    """The chain is followed twice in a run where money is missed; then the other had enough."""
    second = open_liar(till)
    invoice, seen = till.shop.invoice(expires_in_hours=1), till.shop.invoice()
    till.pay(seen, 1_000)
    assert till.look_for(seen).looked == 1
    till.clock.move(minutes=61)
    till.liar.lies = {"/txs/mempool": lambda _: []}
    more = Rival(till).add(9)
    tip = say(str(more.height))
    second.instead = lambda path: tip if path == "/blocks/tip/height" else say("slowly", 429)
    till.open_page(seen)
    report = till.check(till.liar.root, second.root)
    assert "shows 9 blocks more" in report.stuck and not report.is_caught_up
    assert till.look(invoice)["status"] == "open"
    compared = meta.get(till.shop.service.db, meta.Key.COMPARED_AT)
    assert compared is None


def test_another_that_is_behind_only_warns(till, open_liar, caplog):
    second = open_liar(till)
    second.instead = Rival(till)
    till.mine(3)
    till.check()
    till.clock.move(minutes=31)
    assert till.check(till.liar.root, second.root).complete
    assert "is 3 blocks behind" in caplog.text


def test_another_that_does_not_answer_changes_nothing(till, open_liar):
    second = open_liar(till)
    second.instead = lambda _: say("no", 429)
    till.clock.move(minutes=31)
    assert till.check(till.liar.root, second.root).complete


def test_one_that_was_ahead_and_breaks_off_is_told(till, open_liar):
    """What it had shown by then is kept: it had the work."""
    second = open_liar(till)
    freeze(till)
    till.mine(40)
    till.clock.move(minutes=31)
    height = till.sandbox.chain.ledger.height
    second.lies = {f"^/blocks/{height - 20}$": lambda _: say("no", 404)}
    report = till.check(till.liar.root, second.root)
    assert "which cannot be read" in report.stuck
    assert till.shop.service.db.only(blocks.TOP)["height"] == height - 30


def test_others_are_compared_when_no_block_came_for_half_an_hour_every_ten_minutes(till, open_liar):
    second = open_liar(till)
    till.mine()
    till.check(till.liar.root, second.root)
    compared = []
    for minute in range(1, 72):
        till.clock.move(minutes=1)
        second.asked.clear()
        assert till.check(till.liar.root, second.root).complete
        assert second.asked in ([], ["/blocks/tip/height"])
        compared += [minute] if second.asked else []
    assert compared == [31, 41, 51, 61, 71]


def test_while_blocks_come_nobody_else_is_asked(till, open_liar):
    second = open_liar(till)
    for _ in range(6):
        till.clock.move(minutes=10)
        till.mine()
        till.check(till.liar.root, second.root)
    assert second.asked == []


def test_the_comparison_outlives_a_clock_that_was_ahead(till, open_liar):
    second = open_liar(till)
    till.clock.move(hours=10)
    till.check(till.liar.root, second.root)
    till.clock.move(hours=-9)
    second.asked.clear()
    till.check(till.liar.root, second.root)
    assert second.asked == ["/blocks/tip/height"]
