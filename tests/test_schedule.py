"""Which addresses a run looks at: pure cases, both sides of every threshold."""

from datetime import UTC, datetime, timedelta

import pytest

from btcpay.budget import UNLIMITED, Purse
from btcpay.schedule import OVERHEAD, plan
from btcpay.urgency import MONEY, NEAR, PAGE, PASSED, Tip, Waiting, Watched, ready_height, urgency

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TIP = Tip(1000, NOW - timedelta(minutes=7))


def ago(**delta: float) -> datetime:
    return NOW - timedelta(**delta)


def one(name: str = "a", **known: object) -> Watched:
    """An open invoice of three days, looked at an hour ago, unless told otherwise."""
    facts = {"status": "open", "since": ago(days=3), "checked_at": ago(hours=1)} | known
    return Watched(name, **facts)  # type: ignore[arg-type]


ASKED = PAGE


UNCONFIRMED = (Waiting(None),)


@pytest.mark.parametrize(
    ("watched", "reason"),
    [
        pytest.param(one(), None, id="nobody waits for it"),
        pytest.param(one(checked_at=None), None, id="it was never looked at, and nobody waits"),
        pytest.param(one(asked_at=ago(minutes=2)), ASKED, id="its page was seen two minutes ago"),
        pytest.param(one(asked_at=ago(seconds=121)), None, id="its page was seen a second earlier"),
        pytest.param(
            one(asked_at=NOW, checked_at=ago(seconds=50)), ASKED, id="and the last look is 50 s ago"
        ),
        pytest.param(
            one(asked_at=NOW, checked_at=ago(seconds=49)), None, id="and the last look is 49 s ago"
        ),
        pytest.param(
            one(asked_at=NOW, status="expired"),
            None,
            id="an expired one has its turn",
        ),
        pytest.param(
            one(asked_at=NOW, status="paid"), None, id="the receipt of a paid one is read"
        ),
        pytest.param(one(expires_at=ago(hours=-1)), None, id="an hour before its deadline"),
        pytest.param(one(expires_at=ago(seconds=-91)), None, id="91 s before its deadline"),
        pytest.param(one(expires_at=ago(seconds=-90)), NEAR, id="90 s before its deadline"),
        pytest.param(
            one(expires_at=ago(seconds=-60), checked_at=ago(seconds=30)),
            None,
            id="before its deadline, after the last look before it",
        ),
        pytest.param(
            one(expires_at=ago(seconds=-60), checked_at=ago(seconds=31)),
            NEAR,
            id="before its deadline, the last look a second too early",
        ),
        pytest.param(
            one(expires_at=NOW, checked_at=ago(seconds=1)), PASSED, id="at its deadline, at once"
        ),
        pytest.param(
            one(expires_at=ago(hours=1), checked_at=ago(hours=1), waiting=UNCONFIRMED),
            MONEY,
            id="looked at since its deadline, and money waits",
        ),
        pytest.param(
            one(expires_at=ago(hours=1), checked_at=ago(minutes=30)),
            PASSED,
            id="looked at since its deadline, open still, and nothing waits",
        ),
        pytest.param(
            one(expires_at=ago(hours=1), status="expired"),
            None,
            id="a finished one has no deadline",
        ),
        pytest.param(
            one(waiting=UNCONFIRMED, checked_at=ago(minutes=7, seconds=1)),
            MONEY,
            id="money waits, and there is a block since",
        ),
        pytest.param(
            one(waiting=UNCONFIRMED, checked_at=ago(minutes=7)),
            None,
            id="money waits, no block since",
        ),
        pytest.param(
            one(waiting=(Waiting(1001),)), None, id="money in a block that is not deep enough"
        ),
        pytest.param(one(waiting=(Waiting(1000),)), MONEY, id="money in a block, deep enough now"),
        pytest.param(
            one(waiting=(Waiting(1001), Waiting(None))), MONEY, id="one in a block, one in none"
        ),
        pytest.param(one(doubted=True), MONEY, id="money that no explorer could prove"),
        pytest.param(
            one(doubted=True, checked_at=ago(minutes=5)), None, id="could not prove, no block since"
        ),
        pytest.param(
            one(waiting=UNCONFIRMED, status="canceled"),
            None,
            id="a canceled one has its turn",
        ),
    ],
)
def test_urgent_is_what_somebody_waits_for(watched, reason):
    assert urgency(watched, TIP, NOW) == reason


@pytest.mark.parametrize(
    ("failures", "minutes", "rests"),
    [(2, 0, False), (3, 0.99, True), (3, 1, False), (5, 3.99, True), (5, 4, False)]
    + [(50, 59, True), (50, 60, False)],
)
def test_an_address_that_always_fails_is_looked_at_more_and_more_seldom(failures, minutes, rests):
    failing = one(expires_at=ago(hours=1), failures=failures, failed_at=ago(minutes=minutes))
    assert (urgency(failing, TIP, NOW) is None) is rests
    assert (plan([failing], TIP, UNLIMITED, NOW).looks == []) is rests


def test_a_deadline_comes_first_and_then_who_has_waited_most_times_over():
    page = one("page", asked_at=NOW, checked_at=ago(minutes=3))
    money = one("money", waiting=UNCONFIRMED, checked_at=ago(minutes=20))
    late = one("late", expires_at=ago(seconds=1), checked_at=ago(seconds=55))
    new_page = one("new page", asked_at=NOW, checked_at=ago(minutes=1))
    looks = plan([new_page, money, page, late], TIP, UNLIMITED, NOW).looks
    assert looks == ["late", "page", "money", "new page"]


def test_who_failed_last_comes_last():
    poison = one("poison", asked_at=NOW, failures=1, failed_at=ago(minutes=1))
    good = one("good", asked_at=NOW, checked_at=ago(minutes=2))
    assert plan([poison, good], TIP, UNLIMITED, NOW).looks == ["good", "poison"]


@pytest.mark.parametrize(("minutes", "reason"), [(9.99, None), (10, MONEY)])
def test_money_is_looked_at_every_ten_minutes_without_a_block(minutes, reason):
    old_tip = Tip(1000, ago(hours=1))
    watched = one(waiting=UNCONFIRMED, checked_at=ago(minutes=minutes))
    assert urgency(watched, old_tip, NOW) == reason


@pytest.mark.parametrize(
    ("coinbase", "confirmations", "height"),
    [(False, 1, 500), (False, 6, 505), (True, 1, 599), (True, 100, 599)],
)
def test_an_output_is_ready_when_its_block_is_deep_enough(coinbase, confirmations, height):
    assert ready_height(500, coinbase, confirmations) == height


def many(count: int, **known: object) -> list[Watched]:
    return [one(f"n{number}", **known) for number in range(count)]


def test_all_are_looked_at_when_all_fit():
    found = plan([*many(500), one("payer", asked_at=NOW)], TIP, UNLIMITED, NOW)
    assert len(found.looks) == 501 and found.looks[0] == "payer"
    assert (found.unreached, found.put_off) == ([], 0)


def test_with_nothing_left_the_urgent_are_unreached_and_the_others_put_off():
    found = plan([*many(3), one("payer", asked_at=NOW)], TIP, Purse(600, 0), NOW)
    assert (found.looks, found.unreached, found.put_off, found.swept) == ([], ["payer"], 3, 0)


@pytest.mark.parametrize(("left", "looks"), [(OVERHEAD + 2, 2), (OVERHEAD + 1, 1), (OVERHEAD, 0)])
def test_the_urgent_get_all_that_is_left_the_longest_unseen_first(left, looks):
    payers = [
        one("new", asked_at=NOW, checked_at=ago(minutes=1)),
        one("old", asked_at=NOW, checked_at=ago(minutes=2)),
    ]
    found = plan(payers, TIP, Purse(600, left), NOW)
    assert found.looks == ["old", "new"][:looks]
    assert sorted(found.unreached + found.looks) == ["new", "old"]


def test_a_history_costs_two_calls():
    payers = many(10, asked_at=NOW, has_history=True)
    assert len(plan(payers, TIP, Purse(600, OVERHEAD + 10), NOW).looks) == 5


def test_the_others_come_in_the_order_of_their_waiting_for_their_age():
    fresh = one("fresh", since=ago(minutes=30), checked_at=ago(minutes=20))
    young = one("young", since=ago(hours=10), checked_at=ago(hours=6))
    old = one("old", since=ago(days=20), checked_at=ago(hours=13))
    older = one("older", since=ago(days=30), checked_at=ago(hours=14))
    never = one("never", since=ago(minutes=1), checked_at=None)
    found = plan([older, old, young, fresh, never], TIP, UNLIMITED, NOW)
    assert found.looks == ["never", "fresh", "young", "older", "old"]


@pytest.mark.parametrize(
    ("purse", "payers", "turns"),
    [
        # 600 an hour, less 5 x 60 for payers and 138 for tips, blocks and proofs; of 162 two
        # thirds, of which a run takes an eighth.
        pytest.param(Purse(600, 600, 0, 60, 60), 5, 13, id="beside five payers"),
        pytest.param(Purse(600, 600, 54, 60, 60), 5, 6, id="after half of the share in this hour"),
        pytest.param(Purse(600, 600, 100, 60, 60), 5, 4, id="four at least while some is left"),
        pytest.param(Purse(600, 600, 180, 60, 60), 5, 0, id="after all of the share"),
        pytest.param(Purse(600, 600, 0, 60, 60), 50, 4, id="a trickle, however many payers"),
        pytest.param(Purse(600, 600), 0, 203, id="a third of it in the first run of all"),
        pytest.param(Purse(600, 600, 0, 3600, 3600), 0, 500, id="all when runs come hourly"),
        pytest.param(Purse(600, 600, 0, 3600, 60), 0, 203, id="a third of it after a pause"),
        pytest.param(Purse(600, 10, 0, 3600, 3600), 0, 6, id="no more than is left"),
        pytest.param(Purse(100_000, 100_000, 30_000, 60, 60), 5, 500, id="all with a large budget"),
    ],
)
def test_the_others_get_their_share(purse, payers, turns):
    waiting = [one(f"payer{number}", asked_at=NOW) for number in range(payers)]
    found = plan([*waiting, *many(500)], TIP, purse, NOW)
    assert len([name for name in found.looks if name.startswith("n")]) == turns
    assert found.put_off == 500 - turns
    assert found.swept == (turns + (OVERHEAD if turns and not payers else 0))
