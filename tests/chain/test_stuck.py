"""A chain that stands still, or of which another explorer has more: nothing expires then."""

from dataclasses import replace
from datetime import timedelta

import pytest

from storage.queries import blocks, meta
from tests.support.builders import REGTEST, Clock
from tests.support.fake_esplora import dropped, say
from tests.support.rival import Rival

# As mainnet in this, and as regtest in all else: nobody can mine mainnet's blocks here.
IMPATIENT = replace(REGTEST, tip_max_age=timedelta(hours=2))


@pytest.mark.parametrize(
    ("minutes", "is_stuck"), [(119, False), (120, False), (121, True)]
)
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
        assert (
            report.stuck_reason == "no block has come for 121 minutes"
            and not report.chain_failed
        )
        assert "nothing expires: no block has come for 121 minutes" in caplog.text
        till.mine()
        assert till.check(till.liar.root, network=IMPATIENT).complete
        assert till.look(invoice)["status"] == "expired"


def test_what_is_in_a_block_is_settled_even_while_the_chain_stands_still(till):
    invoice = till.pay_in_block()
    till.clock.move(hours=5)
    report = till.check(till.liar.root, network=IMPATIENT)
    assert report.stuck_reason and report.new_statuses == {invoice["id"]: "paid"}


def freeze(till):
    """The first explorer shows no block any more that comes from now on."""
    till.liar.instead = Rival(till)
    return till.liar.instead


@pytest.mark.parametrize("ahead", [1, 2, 3, 40])
def test_a_frozen_first_explorer_keeps_no_payment_back(till, open_liar, ahead):
    second = open_liar(till)
    invoice = till.shop.invoice(expires_in_hours=1)
    freeze(till)
    till.mine(ahead - 1) if ahead > 1 else None
    till.pay_in_block(invoice)
    report = till.check(till.liar.root, second.root)
    assert report.complete and report.new_statuses == {invoice["id"]: "paid"}
    top = till.shop.service.db.get(blocks.TOP)
    assert top.hash == till.sandbox.chain.ledger.tip.hash


@pytest.mark.parametrize("lie", ["height alone", "headers without blocks below"])
def test_blocks_that_cannot_be_shown_are_told_and_nothing_expires(
    till, open_liar, lie, caplog
):
    second = open_liar(till)
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(minutes=61)
    more = Rival(till).add(9)

    def answer(path):
        if path == "/blocks/tip/height":
            return say(str(more.height))
        return (
            say("no", 404) if lie == "height alone" or "/header" in path else more(path)
        )

    second.instead = answer
    report = till.check(till.liar.root, second.root)
    assert (
        not report.complete
        and "shows 9 blocks more, which cannot be read" in report.stuck_reason
    )
    assert till.look(invoice)["status"] == "open" and report.stuck_reason in caplog.text
    second.instead = lambda _: None
    assert till.check(till.liar.root, second.root).complete
    assert till.look(invoice)["status"] == "expired"


def test_what_was_said_of_more_blocks_holds_for_the_whole_run(till, open_liar):
    """The chain is followed twice in a run where money is missed; then the other had enough."""
    second = open_liar(till)
    invoice = till.shop.invoice(expires_in_hours=1)
    seen = till.shop.invoice()
    till.pay(seen, 1_000)
    assert till.look_for(seen).looked_at == 1
    freeze(till)
    till.mine(40)
    till.clock.move(minutes=61)
    for one in (till.liar, second):
        one.lies = {"/txs/mempool": lambda _: []}
    second.lies |= {
        f"^/blocks/{till.sandbox.chain.ledger.height - 20}$": lambda _: say("no", 429)
    }
    till.open_page(seen)
    report = till.check(till.liar.root, second.root)
    assert (
        "shows more blocks, which cannot be read" in report.stuck_reason
        and not report.is_caught_up
    )
    assert till.look(invoice)["status"] == "open"


def test_one_that_rests_is_not_said_to_know_more(till, open_liar):
    """Though the other has not yet what was proven."""
    second = open_liar(till)
    till.mine(2)
    assert till.check(till.liar.root, second.root).complete
    till.liar.instead = Rival(till, till.sandbox.chain.ledger.height - 2)
    till.explorers()._quota.note_refusal(second.root.removeprefix("http://"), 3600)
    assert not till.check(till.liar.root, second.root).stuck_reason


def test_one_that_was_ahead_and_breaks_off_is_told(till, open_liar):
    """Headers that it had shown by then are kept: it had the work."""
    second = open_liar(till)
    freeze(till)
    till.mine(40)
    till.clock.move(minutes=31)
    height = till.sandbox.chain.ledger.height
    second.lies = {f"^/blocks/{height - 20}$": lambda _: say("no", 404)}
    report = till.check(till.liar.root, second.root)
    assert "which cannot be read" in report.stuck_reason
    assert till.shop.service.db.get(blocks.TOP).height == height - 30


def test_a_run_without_news_asks_each_explorer_once(till, open_liar):
    second = open_liar(till)
    till.mine()
    till.check(till.liar.root, second.root)
    for one in (till.liar, second):
        one.asked.clear()
    till.clock.move(minutes=61)
    assert till.check(till.liar.root, second.root).complete
    assert till.liar.asked == second.asked == ["/blocks/tip/hash"]


@pytest.mark.parametrize(("minutes", "is_stuck"), [(120, False), (121, True)])
@pytest.mark.parametrize("hours_off", [0, -3])
def test_silence_is_measured_whatever_the_clock_says(
    till, hours_off, minutes, is_stuck
):
    """The only explorer is frozen, and this machine's clock may be three hours behind."""
    clock = Clock()
    till.mine()
    for minute in (0, minutes):
        till.clock.move(minutes=minute)
        clock.at = till.clock.at + timedelta(hours=hours_off)
        report = till.check(till.liar.root, clock=clock, network=IMPATIENT)
        assert report.complete != (is_stuck and minute > 0)
    assert not is_stuck or report.stuck_reason == "no block has come for 121 minutes"


def test_after_a_restart_of_the_machine_silence_is_measured_anew(till):
    till.check()
    known = meta.get(till.shop.service.db, meta.Key.TIP_SINCE)
    meta.put(till.shop.service.db, meta.Key.TIP_SINCE, known.replace("this", "another"))
    till.clock.move(minutes=-180)  # of a clock that is behind since then
    assert till.check(network=IMPATIENT).complete
    till.clock.move(minutes=121)
    assert (
        till.check(network=IMPATIENT).stuck_reason
        == "no block has come for 121 minutes"
    )


@pytest.mark.both_databases
@pytest.mark.parametrize("second_is", ["ahead", "dead", "broken", "three behind"])
def test_an_end_needs_the_word_of_a_second_explorer_for_a_day(
    till, open_liar, second_is
):
    """The first is behind, though not for long: nothing else says that the chain is not whole."""
    second = open_liar(till)
    invoice = till.shop.invoice(expires_in_hours=1)
    roots = (till.liar.root, second.root)
    behind = Rival(till)
    till.clock.move(minutes=40)
    freeze(till).add(3)
    till.pay(invoice)
    till.mine(7)
    answers = {"dead": lambda _: dropped, "broken": lambda _: say("no", 500)}
    second.instead = answers.get(second_is) or (
        behind if second_is != "ahead" else lambda _: None
    )
    till.clock.move(minutes=21)
    report = till.check(*roots)
    assert report.new_statuses == (
        {invoice["id"]: "paid"} if second_is == "ahead" else {}
    )
    if second_is != "ahead":
        till.clock.move(hours=23, minutes=58)
        assert till.check(*roots).new_statuses == {}
        till.clock.move(minutes=2)
        assert till.check(*roots).new_statuses == {invoice["id"]: "expired"}


def test_one_of_three_explorers_that_is_dead_holds_no_end(till, open_liar):
    second = open_liar(till)
    third = open_liar(till)
    invoice = till.shop.invoice(expires_in_hours=1)
    till.clock.move(minutes=61)
    second.instead = lambda _: dropped
    report = till.check(till.liar.root, second.root, third.root)
    assert report.new_statuses == {invoice["id"]: "expired"}
