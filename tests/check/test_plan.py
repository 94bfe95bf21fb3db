"""Which addresses a run looks at: pure cases, both sides of every threshold."""

from datetime import UTC, datetime, timedelta

import pytest
from btcpay.check.plan import plan
from btcpay.explorers.calls import OVERHEAD

from btcpay.check.urgency import (
    MONEY,
    NEAR,
    OPENED,
    PAGE,
    PART,
    PASSED,
    Tip,
    Waiting,
    Watched,
    ready_height,
    urgency,
)
from btcpay.explorers.allowance import UNLIMITED, Allowance

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TIP = Tip(1000, NOW - timedelta(minutes=7))


def ago(**delta: float) -> datetime:
    return NOW - timedelta(**delta)


def one(name: str = "a", **known: object) -> Watched:
    """An open invoice of three days, looked at an hour ago, unless told otherwise."""
    facts = {"status": "open", "since": ago(days=3), "checked_at": ago(hours=1)} | known
    return Watched(name, **facts)  # type: ignore[arg-type]


def page(
    name: str = "page", opened: float = 5, looked: float | None = 2, **known: object
) -> Watched:
    """One whose page was opened and looked at so many minutes ago, and is open."""
    checked_at = ago(hours=5) if looked is None else ago(minutes=looked)
    facts = {"asked_since": ago(minutes=opened), "asked_at": NOW, "checked_at": checked_at} | known
    return one(name, **facts)


UNCONFIRMED = (Waiting(None),)


@pytest.mark.parametrize(
    ("watched", "reason"),
    [
        pytest.param(one(), None, id="nobody waits for it"),
        pytest.param(one(checked_at=None), None, id="it was never looked at, and nobody waits"),
        pytest.param(page(opened=0, looked=None), OPENED, id="its page was opened this moment"),
        pytest.param(page(opened=60, looked=None), OPENED, id="an hour ago, and never looked at"),
        pytest.param(page(opened=60.1, looked=None), None, id="more than an hour ago"),
        pytest.param(page(opened=1.4, looked=0.84), PAGE, id="looked at at once, 50 s ago"),
        pytest.param(page(opened=1.4, looked=0.81), None, id="looked at at once, 49 s ago"),
        pytest.param(page(opened=5, looked=2.5), PAGE, id="looked at after 2:30, as long ago"),
        pytest.param(
            page(opened=5, looked=2.4), None, id="less long ago, beyond what cron may err"
        ),
        pytest.param(page(opened=60, looked=3.84), PAGE, id="every four minutes then"),
        pytest.param(page(opened=60, looked=3.82), None, id="a second too early"),
        pytest.param(page(opened=60.1, looked=10), None, id="after an hour it has its turn"),
        pytest.param(
            page(opened=100, looked=50, came_at=ago(minutes=55), waiting=(Waiting(1001),)),
            PAGE,
            id="renewed by a part of the money",
        ),
        pytest.param(
            page(opened=5, looked=3, waiting=(Waiting(1001),), is_covered=True),
            None,
            id="the money is there, only blocks are waited for",
        ),
        pytest.param(
            page(opened=30, looked=15, asked_at=ago(minutes=14.9)),
            PAGE,
            id="as long as it is closed",
        ),
        pytest.param(
            page(opened=30, looked=15, asked_at=ago(minutes=15.5)), None, id="closed for longer"
        ),
        pytest.param(page(looked=None, status="expired"), None, id="an expired one has its turn"),
        pytest.param(
            page(looked=None, status="paid"), None, id="the receipt of a paid one is read"
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
            PART,
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
            PART,
            id="a part waits, and there is a block since",
        ),
        pytest.param(
            one(waiting=UNCONFIRMED, checked_at=ago(minutes=7, seconds=1), is_covered=True),
            MONEY,
            id="all of it waits, and there is a block since",
        ),
        pytest.param(
            one(waiting=UNCONFIRMED, checked_at=ago(minutes=7)),
            None,
            id="money waits, no block since",
        ),
        pytest.param(
            one(waiting=(Waiting(1001),)), None, id="money in a block that is not deep enough"
        ),
        pytest.param(one(waiting=(Waiting(1000),)), PART, id="money in a block, deep enough now"),
        pytest.param(
            one(waiting=(Waiting(1001), Waiting(None))), PART, id="one in a block, one in none"
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
    assert (plan([failing], TIP, UNLIMITED, NOW).ids == []) is rests


def test_deadlines_come_first_then_money_then_pages_the_newest_before_older_ones():
    watched = [
        page("old page", opened=50, looked=9),
        page("page", opened=8, looked=4),
        page("opened", opened=1, looked=None),
        one("passed", expires_at=ago(seconds=1), checked_at=ago(seconds=55)),
        one("money", waiting=UNCONFIRMED, checked_at=ago(minutes=20), is_covered=True),
        one("near", expires_at=ago(seconds=-60), checked_at=ago(minutes=2)),
    ]
    looks = plan(watched, TIP, UNLIMITED, NOW).ids
    assert looks == ["near", "money", "passed", "opened", "page", "old page"]


def test_who_failed_last_comes_last():
    poison = page("poison", failures=1, failed_at=ago(minutes=1))
    good = page("good", looked=2.5)
    assert plan([poison, good], TIP, Allowance(600, 600, 0, 60, 60), NOW).ids == ["good", "poison"]


@pytest.mark.parametrize(("minutes", "reason"), [(9.99, None), (10, MONEY)])
def test_money_is_looked_at_every_ten_minutes_without_a_block(minutes, reason):
    old_tip = Tip(1000, ago(hours=1))
    watched = one(waiting=UNCONFIRMED, checked_at=ago(minutes=minutes), is_covered=True)
    assert urgency(watched, old_tip, NOW) == reason


@pytest.mark.parametrize(
    ("hours", "minutes", "height", "reason"),
    [
        pytest.param(4, 29.9, None, None, id="less than an eighth of its age"),
        pytest.param(4, 30.1, None, MONEY, id="an eighth of its age"),
        pytest.param(200, 59.9, None, None, id="an hour at most, less"),
        pytest.param(200, 60.1, None, MONEY, id="an hour at most"),
        pytest.param(4, 8, 1000, MONEY, id="whose block is deep enough now is not kept waiting"),
    ],
)
def test_what_has_waited_for_hours_is_looked_at_less_often(hours, minutes, height, reason):
    known = {"came_at": ago(hours=hours), "checked_at": ago(minutes=minutes), "is_covered": True}
    assert urgency(one(waiting=(Waiting(height),), **known), TIP, NOW) == reason


@pytest.mark.parametrize(
    ("coinbase", "confirmations", "height"),
    [(False, 1, 500), (False, 6, 505), (True, 1, 599), (True, 100, 599)],
)
def test_an_output_is_ready_when_its_block_is_deep_enough(coinbase, confirmations, height):
    assert ready_height(500, coinbase, confirmations) == height


def many(count: int, **known: object) -> list[Watched]:
    return [one(f"n{number}", **known) for number in range(count)]


MINUTELY = {"since_s": 60, "rhythm_s": 60}


def pages(count: int, **known: float) -> list[Watched]:
    return [page(f"page{number}", **known) for number in range(count)]


def test_all_are_looked_at_when_all_fit():
    found = plan([*many(500), page("payer", 9, 4)], TIP, UNLIMITED, NOW)
    assert len(found.ids) == 501 and found.ids[0] == "payer"
    assert (found.unreached, found.put_off) == ([], 0)


@pytest.mark.parametrize(("minutes", "unreached"), [(5, []), (5.1, ["payer"])])
def test_with_nothing_left_who_has_waited_for_five_minutes_is_unreached(minutes, unreached):
    found = plan([*many(3), page("payer", 10, minutes)], TIP, Allowance(600, 0), NOW)
    assert (found.ids, found.unreached) == ([], unreached)
    assert (found.put_off, found.background_calls) == (4 - len(unreached), 0)


@pytest.mark.parametrize(
    ("watched", "unreached"),
    [
        pytest.param(one("a", expires_at=ago(seconds=-60)), ["a"], id="before a deadline, at once"),
        pytest.param(one("a", expires_at=ago(minutes=5)), [], id="five minutes after it"),
        pytest.param(one("a", expires_at=ago(minutes=5.1)), ["a"], id="and a moment more"),
        pytest.param(page("a", 5, None), [], id="a page that was opened five minutes ago"),
        pytest.param(page("a", 5.1, None), ["a"], id="or a moment more"),
    ],
)
def test_who_is_kept_waiting_too_long_is_unreached(watched, unreached):
    assert plan([watched], TIP, Allowance(600, 0), NOW).unreached == unreached


def test_pages_have_two_calls_in_five_as_many_in_each_minute_the_newest_first():
    watched = [*pages(200, opened=40, looked=20), *(page(f"new{n}", 8, 4) for n in range(3))]
    found = plan(watched, TIP, Allowance(600, 600, 600, **MINUTELY), NOW)
    assert len(found.ids) == 4 and found.ids[:3] == ["new0", "new1", "new2"]
    assert found.put_off == 0 and len(found.unreached) == 199


@pytest.mark.parametrize(
    ("since_s", "looks"), [(59, 0), (60, 4), (119, 4), (120, 8), (3600, 200), (None, 200)]
)
def test_a_second_machine_in_the_same_minute_takes_no_more_pages(since_s, looks):
    allowance = Allowance(600, 600, 600, since_s, 60)
    assert len(plan(pages(200, opened=40, looked=20), TIP, allowance, NOW).ids) == looks


def test_half_of_what_pages_leave_is_for_those_that_have_been_open_for_long():
    watched = [*pages(9, opened=200, looked=30), page("payer", 8, 4)]
    found = plan(watched, TIP, Allowance(600, 600, 600, **MINUTELY), NOW)
    assert found.ids[0] == "payer" and len(found.ids) == 2
    assert found.unreached == []


@pytest.mark.parametrize(("left", "looks"), [(OVERHEAD + 300 + 40, 20), (OVERHEAD + 300, 2)])
def test_first_looks_have_half_of_what_is_not_kept_and_a_few_of_that(left, looks):
    opened = pages(100, opened=1, looked=None)
    found = plan(opened, TIP, Allowance(600, left, 600, **MINUTELY), NOW)
    assert len(found.ids) == looks


def test_deadlines_have_half_of_what_is_left_whatever_is_kept():
    ending = many(100, expires_at=ago(seconds=-60))
    found = plan(ending, TIP, Allowance(600, OVERHEAD + 60, 600, **MINUTELY), NOW)
    assert len(found.ids) == 30 and len(found.unreached) == 70


def test_a_history_costs_two_calls():
    payers = pages(300, opened=30, looked=10, has_history=True)
    assert len(plan(payers, TIP, Allowance(600, 600, 600), NOW).ids) == 120


def test_the_others_come_in_the_order_of_their_waiting_for_their_age():
    fresh = one("fresh", since=ago(minutes=30), checked_at=ago(minutes=20))
    young = one("young", since=ago(hours=10), checked_at=ago(hours=6))
    old = one("old", since=ago(days=20), checked_at=ago(hours=13))
    older = one("older", since=ago(days=30), checked_at=ago(hours=14))
    never = one("never", since=ago(minutes=1), checked_at=None)
    found = plan([older, old, young, fresh, never], TIP, UNLIMITED, NOW)
    assert found.ids == ["never", "fresh", "young", "older", "old"]


@pytest.mark.parametrize(
    ("allowance", "payers", "turns"),
    [
        # 600 an hour, less 300 for payers who are there or may come; of the rest two thirds, of
        # which a run takes an eighth.
        pytest.param(Allowance(600, 600, 0, 60, 60), 5, 25, id="beside five payers"),
        pytest.param(
            Allowance(600, 600, 100, 60, 60), 5, 13, id="after half of the share in this hour"
        ),
        # 19 x 16 for payers, as far as it is half of all, and 138 for tips, blocks and proofs.
        pytest.param(Allowance(600, 600, 0, 60, 60), 19, 13, id="beside nineteen payers"),
        pytest.param(Allowance(600, 600, 0, 60, 60), 190, 13, id="beside two hundred pages"),
        pytest.param(Allowance(600, 600, 80, 60, 60), 190, 4, id="four while some is left"),
        pytest.param(Allowance(600, 600, 109, 60, 60), 190, 0, id="after all of the share"),
        pytest.param(Allowance(600, 158, 0, 60, 60), 2, 4, id="no more than is not kept"),
        pytest.param(Allowance(600, 100, 29, 60, 60), 2, 4, id="and a trickle of what is"),
        pytest.param(Allowance(600, 100, 30, 60, 60), 2, 0, id="of one in twenty"),
        pytest.param(Allowance(600, 600), 0, 203, id="a third of it in the first run of all"),
        pytest.param(Allowance(600, 600, 0, 3600, 3600), 0, 500, id="all when runs come hourly"),
        pytest.param(Allowance(600, 600, 0, 3600, 60), 0, 203, id="a third of it after a pause"),
        pytest.param(Allowance(600, 10, 0, 3600, 3600), 0, 4, id="no more than is left"),
        pytest.param(
            Allowance(100_000, 100_000, 30_000, 60, 60), 5, 500, id="all with a large quota"
        ),
    ],
)
def test_the_others_get_their_share(allowance, payers, turns):
    waiting = pages(payers, opened=9, looked=4)
    found = plan([*waiting, *many(500)], TIP, allowance, NOW)
    assert len([name for name in found.ids if name.startswith("n")]) == turns
    assert found.background_calls == (turns + (OVERHEAD if turns and not payers else 0))
