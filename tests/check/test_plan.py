"""For whom the mempool is asked when, and how calls are shared: both sides of every threshold."""

from datetime import UTC, datetime, timedelta
from statistics import fmean

import pytest

from btcpay.chain.sources import UNLIMITED, Allowance
from btcpay.check.due import NEVER, OWN_PER_HOUR, WatchedInvoice, due_look
from btcpay.check.plan import plan, shares
from tests.support.hours import SLOW_PATIENCES_S, Hours, Simulation

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)  # of patience with what has vanished; none on regtest
PER_HOUR = 600
PAGE = "somebody is looking at its page"
MONEY = "money is on its way"
NEAR = "its deadline is near"
PASSED = "its deadline has passed"


def ago(**delta):
    return NOW - timedelta(**delta)


def one(name="a", **known):
    """An open invoice of three days, looked at an hour ago, unless told otherwise."""
    facts = {"status": "open", "checked_at": ago(hours=1)} | known
    return WatchedInvoice(name, **facts)  # type: ignore[arg-type]


def page(name="page", opened=5, looked=2, **known):
    """One whose page was opened and looked for so many minutes ago, and is open."""
    checked_at = ago(hours=5) if looked is None else ago(minutes=looked)
    facts = {
        "opened_at": ago(minutes=opened),
        "asked_at": NOW,
        "checked_at": checked_at,
    } | known
    return one(name, **facts)


def passed(looked=60, **known):
    """One whose deadline passed an hour ago, looked for so many minutes ago."""
    checked_at = NEVER if looked is None else ago(minutes=looked)
    return one(**{"expires_at": ago(hours=1), "checked_at": checked_at} | known)


def opened_once(**known):
    """One whose page was open for a minute, three hours ago."""
    return one(opened_at=ago(hours=3), asked_at=ago(minutes=179), **known)


def money(came, looked):
    """One for which money came, and that was looked for, so many minutes ago."""
    return one(came_at=ago(minutes=came), checked_at=ago(minutes=looked))


SECOND = 1 / 60


DUE = {
    "nobody waits for it": (one(), None),
    "it was never looked for, and nobody waits": (one(checked_at=NEVER), None),
    "its page was opened this moment": (page(opened=0, looked=None), PAGE),
    "and it was never looked for": (page(opened=0, checked_at=NEVER), PAGE),
    "looked for at once, 10 s ago": (page(opened=1, looked=10 * SECOND), PAGE),
    "looked for at once, 9 s ago": (page(opened=1, looked=9 * SECOND), None),
    "likewise at the end of an hour": (page(opened=60, looked=10 * SECOND), PAGE),
    "then every ten minutes": (page(opened=71, looked=10), PAGE),
    "and not sooner": (page(opened=71, looked=10 - SECOND), None),
    "then after an eighth of its time": (page(opened=180, looked=20), PAGE),
    "and no less": (page(opened=180, looked=20 - SECOND), None),
    "after days once an hour": (page(opened=6_000, looked=60), PAGE),
    "and no more than that": (page(opened=6_000, looked=60 - SECOND), None),
    "closed after hours, and looked for not long before": (
        page(opened=180, looked=4, asked_at=ago(minutes=3)), PAGE),
    "closed, looked for within the minute in which that was": (
        page(opened=30, looked=2, asked_at=ago(minutes=3)), PAGE),
    "closed, and looked for since": (
        page(opened=30, looked=2 - SECOND, asked_at=ago(minutes=3)), None),
    "closed for ten minutes": (page(opened=30, looked=None, asked_at=ago(minutes=10)), PAGE),
    "closed for more": (page(opened=30, looked=None, asked_at=ago(minutes=10 + SECOND)), None),
    "the money is there, whoever looks": (page(looked=None, is_covered=True), None),
    "the page of an expired one": (page(looked=None, status="expired"), None),
    "the receipt of a paid one": (page(looked=None, status="paid"), None),
    "91 s before its deadline": (one(expires_at=ago(seconds=-91)), None),
    "91 s before, its page was open once": (opened_once(expires_at=ago(seconds=-91)), None),
    "90 s before, its page was open once": (opened_once(expires_at=ago(seconds=-90)), NEAR),
    "90 s before its deadline, and nobody ever looked": (one(expires_at=ago(seconds=-90)), None),
    "before its deadline, looked for since it was near": (
        opened_once(expires_at=ago(seconds=-60), checked_at=ago(seconds=30)), None),
    "before its deadline, the last look a second too early": (
        opened_once(expires_at=ago(seconds=-60), checked_at=ago(seconds=31)), NEAR),
    "at its deadline, at once": (one(expires_at=NOW, checked_at=ago(seconds=1)), PASSED),
    "its deadline passed without a look": (passed(looked=None), PASSED),
    "looked for since its deadline, open still: a block was missing, or it vanished": (
        passed(looked=30), PASSED),
    "looked for since its deadline, and money waits": (
        passed(looked=5, came_at=ago(hours=2), is_covered=True), None),
    "what was in time vanished not quite an hour ago": (
        passed(looked=59, vanished_at=ago(minutes=59, seconds=59)), None),
    "what was in time vanished an hour ago: it ends": (
        passed(looked=59, vanished_at=ago(minutes=60)), PASSED),
    "a finished one has no deadline": (passed(status="expired"), None),
    "money waits, every ten minutes": (money(30, 10), MONEY),
    "money waits, a second too early": (money(30, 10 - SECOND), None),
    "an eighth of its age": (money(240, 30), MONEY),
    "an eighth of its age, and not sooner": (money(240, 30 - SECOND), None),
    "once an hour at least": (money(9 * 24 * 60, 60), MONEY),
    "and no more often": (money(9 * 24 * 60, 60 - SECOND), None),
    "a canceled one's money too": (one(status="canceled", came_at=ago(hours=1)), MONEY),
    "money that waits again since the last look": (money(5, 6), MONEY),
    "a part, the rest may come": (page(opened=5, looked=3, came_at=ago(minutes=3)), PAGE),
    "two looks failed": (page(looked=None, failures=2, failed_at=NOW), PAGE),
    "three: a minute": (page(looked=None, failures=3, failed_at=ago(seconds=59)), None),
    "which is over": (page(looked=None, failures=3, failed_at=ago(seconds=60)), PAGE),
    "five: four": (page(looked=None, failures=5, failed_at=ago(seconds=239)), None),
    "very many: an hour": (passed(failures=99, failed_at=ago(minutes=59)), None),
    "and no longer": (passed(failures=99, failed_at=ago(hours=1)), PASSED),
}  # fmt: skip


@pytest.mark.parametrize(("watched", "reason"), DUE.values(), ids=DUE)
def test_whether_the_mempool_is_asked_now_and_why(watched, reason):
    found = due_look(watched, HOUR, PER_HOUR, NOW)
    assert (found and found.reason) == reason


def test_without_patience_what_vanished_ends_with_the_next_look():
    gone = passed(50 * SECOND, vanished_at=ago(seconds=50))
    assert due_look(gone, timedelta(), PER_HOUR, NOW) and not due_look(
        gone, HOUR, PER_HOUR, NOW
    )


@pytest.mark.parametrize(
    ("watched", "reason"),
    [
        pytest.param(page(opened=30, looked=SECOND), PAGE, id="an open page"),
        pytest.param(
            page(looked=SECOND, asked_at=ago(minutes=3)), None, id="a closed one"
        ),
        pytest.param(
            one(checked_at=NOW, came_at=ago(minutes=1)), MONEY, id="money on its way"
        ),
        pytest.param(one(checked_at=NOW), None, id="nobody waits for it"),
    ],
)
def test_with_an_explorer_of_ones_own_who_waits_is_looked_for_in_every_run(
    watched, reason
):
    assert not due_look(watched, HOUR, OWN_PER_HOUR - 1, NOW)
    found = due_look(watched, HOUR, OWN_PER_HOUR, NOW)
    assert (found and found.reason) == reason


def allowed(left, per_hour=600, minutely=None):
    return Allowance(per_hour, left, per_hour / 60 if minutely is None else minutely)


def shared(*watched, wait=True, **known):
    return shares(allowed(**{"left": 600} | known), watched, wait, NOW)  # type: ignore[arg-type]


MINUTE_AGO = page(looked=1)
SHARES = {
    "a page was looked for five minutes ago": (shared(page()), (13, 2)),
    "and nobody else waits": (shared(page(), wait=False), (17, 2)),
    "a minute ago": (shared(MINUTE_AGO), (7, 2)),
    "ten seconds ago": (shared(page(looked=10 * SECOND)), (2, 2)),
    "a look this moment": (shared(page(looked=0)), (0, 2)),
    "our clock was ahead then": (shared(page(looked=-1)), (0, 2)),
    "what lasts is less": (shared(MINUTE_AGO, minutely=3.0), (2, 1)),
    "and no more than headers and blocks need": (
        shared(MINUTE_AGO, minutely=1.3),
        (0, 0),
    ),
    "what lasts is more, since the hour was quiet": (
        shared(MINUTE_AGO, minutely=20),
        (7, 2),
    ),
    "no page: all is for others": (shared(), (33, 8)),
    "a part of what headers and blocks keep is never for others": (
        shared(left=5),
        (0, 0),
    ),
    "one more": (shared(left=6), (1, 1)),
    "none when nothing is left": (shared(left=0), (0, 0)),
    "a budget of forty": (shared(left=40, per_hour=40), (2, 1)),
    "a budget of four": (shared(left=4, per_hour=4), (1, 1)),
}


@pytest.mark.parametrize(("found", "expected"), SHARES.values(), ids=SHARES)
def test_how_many_looks_may_be_made_for_pages_and_for_others(found, expected):
    assert found == expected


def test_from_look_to_look_no_part_of_a_call_is_lost():
    """Every five seconds, for an hour: 520 looks."""
    looks = 0
    at = ago(minutes=5)
    for second in range(0, 3600, 5):
        now = NOW + timedelta(seconds=second)
        if pages := shares(allowed(600), [page(checked_at=at)], False, now)[0]:
            looks = looks + pages
            at = now
    assert looks in range(520, 520 + 44)  # and what five minutes have saved


def planned(watched, looks=None, ends_before=NOW):
    """With so many looks left."""
    allowance = UNLIMITED if looks is None else allowed(5 + looks)
    return tuple(plan(watched, HOUR, allowance, NOW, ends_before))  # type: ignore[return-value]


FAILED = passed(failures=1, failed_at=ago(minutes=9))
TWO_ENDS = [one(f"end{n}", expires_at=ago(minutes=n)) for n in (1, 3)]
MANY_ENDS = [one(f"end{n}", expires_at=ago(minutes=n + 1)) for n in range(500)]
KNOWN = [one(f"end{n}", expires_at=ago(minutes=n)) for n in (2, 50, 3)]
KNOWN += [page(f"page{n}", opened=n, looked=None) for n in (2, 4)]
KNOWN += [one("money", came_at=ago(minutes=2.5))]
IN_ORDER = ["page4", "page2", "end50", "end3", "money", "end2"]
WAITING = [one("end", expires_at=ago(hours=2)), one("other", expires_at=ago(hours=3))]
WAITING += [page(f"p{n}", opened=n, looked=None) for n in (4.9, 5, 5.1, 6)]
# What is known, how many looks are left, and before when deadlines may be judged.
PLANS = {
    "only who waits is asked for": (
        [[one(f"idle{n}") for n in range(500)] + [page(looked=None)]], (["page"], [], 0)),
    "pages come before money and ends, which are in the order in which they were due": (
        [KNOWN], (IN_ORDER, [], 0)),
    "the quota ends the same order": ([KNOWN, 2], (IN_ORDER[:4], [], 2)),
    "who could not be looked for keeps no other waiting": (
        [[FAILED, one("b", expires_at=ago(minutes=1))]], (["b", "a"], [], 0)),
    "a deadline is asked for when the tip was asked after it": (
        [TWO_ENDS, None, ago(minutes=2)], (["end3"], [], 0)),
    "and else none": ([TWO_ENDS, None, NEVER], ([], [], 0)),
    "ends use what pages leave": (
        [MANY_ENDS, 520], ([f"end{n}" for n in range(499, 491, -1)], [], 492)),
    "five hundred ends keep no page waiting": (
        [[*MANY_ENDS, page("page", opened=30, looked=10)], 520],
        (["page", "end499", "end498"], [], 498)),
    "who waits at a page for more than five minutes is told, and others are put off": (
        [WAITING, 1], (["p6", "other"], ["p5.1"], 1)),
    "without a call left nobody is asked for, and it is told": (
        [[page("page", opened=9, looked=None), TWO_ENDS[0]], 0], ([], ["page"], 1)),
}  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), PLANS.values(), ids=PLANS)
def test_an_invoice_is_looked_for_or_left_alone(given, expected):
    assert planned(*given) == expected


def test_a_look_after_a_run_is_for_pages_alone_and_for_those_whose_time_to_pay_ends():
    watched = [page("page"), page("ending", expires_at=NOW + timedelta(minutes=1))]
    watched += [
        passed(),
        opened_once(expires_at=NOW + timedelta(minutes=1)),
        money(30, 11),
    ]
    found = plan(watched, HOUR, UNLIMITED, NOW, others_wait=True)
    assert found == (["ending", "page", "a"], [], 0)


@pytest.mark.parametrize(("crowd", "first"), [(10, "old"), (11, "new")])
def test_more_than_ten_pages_that_were_opened_in_one_minute_share_a_turn(crowd, first):
    old = [page(f"old{n}", opened=30, looked=10) for n in range(crowd)]
    ids, _, _ = planned([*old, page("new", opened=3, looked=1)], 390)
    assert ids[0].startswith(first) and len(ids) == 8


def test_looks_for_pages_are_made_in_the_order_of_their_need():
    """Whose time to pay ends, the longest wait, who only opened it, what is open for hours."""
    watched = [page("day", opened=1_440, looked=200), page("kept", opened=4, looked=2)]
    watched += [page("fresh", opened=0.5, looked=None, asked_at=ago(minutes=0.5))]
    watched += [page("once", opened=3, looked=None, asked_at=ago(minutes=3))]
    watched += [
        page("long", opened=59, looked=2.5),
        page("longer", opened=60, looked=2.6),
    ]
    watched += [page("over", opened=60 + SECOND, looked=10)]
    watched += [page("ending", opened=9, expires_at=ago(minutes=-1))]
    in_order = ["ending", "longer", "long", "kept", "once", "fresh", "day", "over"]
    assert planned(watched)[0] == in_order


HOURS = {
    "a small shop": (Hours(), 15, 0),
    "twenty payers an hour": (Hours(payers=20), 15, 0),
    "fifty": (Hours(payers=50), 20, 0),
    "three hundred": (Hours(payers=300, seconds=3 * 3600), 90, 0),
    "three hundred orders that nobody pays": (Hours(unpaid=300), 15, 0),
    "six hundred": (Hours(unpaid=600), 15, 0),
    "three hundred whose pages are opened once": (Hours(opened=300), 30, 0),
    "twenty pages held open": (Hours(bots=20), 15, 0),
    "two hundred from the second hour on, beside slow payers": (
        Hours(patiences_s=SLOW_PATIENCES_S, bots=200, bots_from_s=3600), 30, 0),
    "a small shop whose check does not stay": (Hours(stays=False), 45, 0),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("hours", "mean_s", "late"), HOURS.values(), ids=HOURS)
def test_payers_of_a_simulated_shop_are_seen_soon(hours, mean_s, late):
    """On average, and how many after more than five minutes; what is mined counts in a minute."""
    outcome = Simulation(hours)
    assert len(outcome.seen_s) >= 14 and outcome.calls <= 600
    assert max(outcome.counted_s) <= 60 and fmean(outcome.seen_s) <= mean_s
    assert sum(seconds > 300 for seconds in outcome.seen_s) == late
    assert (
        outcome.runs_unreached <= 60 or hours.bots == 200
    )  # no hour has looks for so many pages
