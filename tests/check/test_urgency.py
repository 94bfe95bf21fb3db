"""For whom the mempool is asked when, and how calls are shared: both sides of every threshold."""

from datetime import UTC, datetime, timedelta

import pytest

from btcpay.chain.explorers.quota import UNLIMITED, Allowance
from btcpay.check.urgency import OWN_PER_HOUR, Pace, Watched, pace_of, plan, shares, urgency

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)  # of patience with what has vanished; none on regtest
PAGE, MONEY = "somebody is looking at its page", "money is on its way"
NEAR, PASSED = "its deadline is near", "its deadline has passed"


def ago(**delta: float) -> datetime:
    return NOW - timedelta(**delta)


def one(name: str = "a", **known: object) -> Watched:
    """An open invoice of three days, looked at an hour ago, unless told otherwise."""
    facts = {"status": "open", "since": ago(days=3), "checked_at": ago(hours=1)} | known
    return Watched(name, **facts)  # type: ignore[arg-type]


def page(
    name: str = "page", opened: float = 5, looked: float | None = 2, **known: object
) -> Watched:
    """One whose page was opened and looked for so many minutes ago, and is open."""
    checked_at = ago(hours=5) if looked is None else ago(minutes=looked)
    facts = {"asked_since": ago(minutes=opened), "asked_at": NOW, "checked_at": checked_at} | known
    return one(name, **facts)


def passed(looked: float | None = 60, **known: object) -> Watched:
    """One whose deadline passed an hour ago, looked for so many minutes ago."""
    checked_at = None if looked is None else ago(minutes=looked)
    return one(**{"expires_at": ago(hours=1), "checked_at": checked_at} | known)


def money(came: float, looked: float) -> Watched:
    """One for which money came, and that was looked for, so many minutes ago."""
    return one(came_at=ago(minutes=came), checked_at=ago(minutes=looked))


SECOND = 1 / 60


DUE = {
    "nobody waits for it": (one(), None),
    "it was never looked for, and nobody waits": (one(checked_at=None), None),
    "its page was opened this moment": (page(opened=0, looked=None), PAGE),
    "and it was never looked for": (page(opened=0, checked_at=None), PAGE),
    "looked for at once, 50 s ago": (page(opened=1, looked=50 / 60), PAGE),
    "looked for at once, 49 s ago": (page(opened=1, looked=49 / 60), None),
    "as long ago as it was open then": (page(opened=5, looked=2.42), PAGE),
    "less, beyond what cron may err": (page(opened=5, looked=2.41), None),
    "every four minutes then": (page(opened=60, looked=4 - 1 / 6), PAGE),
    "a second too early": (page(opened=60, looked=4 - 1 / 6 - SECOND), None),
    "after 2.5 hours every ten": (page(opened=160, looked=10), PAGE),
    "and not sooner": (page(opened=160, looked=9.7), None),
    "after days once an hour": (page(opened=6_000, looked=60), PAGE),
    "and no more than that": (page(opened=6_000, looked=59.8), None),
    "closed for as long as it was not looked for": (
        page(opened=30, looked=15, asked_at=ago(minutes=14.9)),
        PAGE,
    ),
    "closed for longer": (page(opened=30, looked=15, asked_at=ago(minutes=15.2)), None),
    "closed for an hour": (page(opened=300, looked=None, asked_at=ago(minutes=60)), PAGE),
    "closed for more than an hour": (
        page(opened=300, looked=None, asked_at=ago(minutes=60 + SECOND)),
        None,
    ),
    "the money is there, whoever looks": (page(looked=None, is_covered=True), None),
    "the page of an expired one": (page(looked=None, status="expired"), None),
    "the receipt of a paid one": (page(looked=None, status="paid"), None),
    "91 s before its deadline": (one(expires_at=ago(seconds=-91)), None),
    "90 s before its deadline": (one(expires_at=ago(seconds=-90)), NEAR),
    "before its deadline, looked for since it was near": (
        one(expires_at=ago(seconds=-60), checked_at=ago(seconds=30)),
        None,
    ),
    "before its deadline, the last look a second too early": (
        one(expires_at=ago(seconds=-60), checked_at=ago(seconds=31)),
        NEAR,
    ),
    "at its deadline, at once": (one(expires_at=NOW, checked_at=ago(seconds=1)), PASSED),
    "its deadline passed without a look": (passed(looked=None), PASSED),
    "looked for since its deadline, open still: a block was missing, or it vanished": (
        passed(looked=30),
        PASSED,
    ),
    "looked for since its deadline, and money waits": (
        passed(looked=5, came_at=ago(hours=2), is_covered=True),
        None,
    ),
    "what was in time vanished not quite an hour ago": (
        passed(looked=59, vanished_at=ago(minutes=59, seconds=59)),
        None,
    ),
    "what was in time vanished an hour ago: it ends": (
        passed(looked=59, vanished_at=ago(minutes=60)),
        PASSED,
    ),
    "a finished one has no deadline": (passed(status="expired"), None),
    "money waits, every ten minutes": (money(30, 10 - 1 / 6), MONEY),
    "money waits, a second too early": (money(30, 9.8), None),
    "an eighth of its age": (money(240, 30), MONEY),
    "an eighth of its age, and not sooner": (money(240, 29), None),
    "once an hour at least": (money(9 * 24 * 60, 60), MONEY),
    "a canceled one's money too": (one(status="canceled", came_at=ago(hours=1)), MONEY),
    "money that waits again since the last look": (money(5, 6), MONEY),
    "a part, the rest may come": (page(opened=5, looked=3, came_at=ago(minutes=3)), PAGE),
    "two looks failed": (page(looked=None, failures=2, failed_at=NOW), PAGE),
    "three: a minute": (page(looked=None, failures=3, failed_at=ago(seconds=59)), None),
    "which is over": (page(looked=None, failures=3, failed_at=ago(seconds=60)), PAGE),
    "five: four": (page(looked=None, failures=5, failed_at=ago(seconds=239)), None),
    "very many: an hour": (passed(failures=99, failed_at=ago(minutes=59)), None),
    "and no longer": (passed(failures=99, failed_at=ago(hours=1)), PASSED),
}


@pytest.mark.parametrize(("watched", "reason"), DUE.values(), ids=DUE)
def test_whether_the_mempool_is_asked_now_and_why(watched, reason):
    found = urgency(watched, Pace(HOUR), NOW)
    assert (found and found.reason) == reason


def test_without_patience_what_vanished_ends_with_the_next_look():
    gone = passed(50 * SECOND, vanished_at=ago(seconds=50))
    assert urgency(gone, Pace(timedelta()), NOW) and not urgency(gone, Pace(HOUR), NOW)


def test_a_page_that_stays_open_is_looked_for_within_five_minutes_and_ever_less_often():
    """Cron comes each minute; what it costs in a day is bounded."""
    opened, looks = NOW, list[float]()
    checked_at = None
    for minute in range(24 * 60):
        now = opened + timedelta(minutes=minute)
        watched = one(checked_at=checked_at, asked_since=opened, asked_at=now)
        if urgency(watched, Pace(HOUR), now):
            looks.append(minute)
            checked_at = now
    assert looks[:7] == [0, 1, 2, 4, 8, 12, 16]
    pauses = [b - a for a, b in zip(looks, looks[1:], strict=False)]
    assert max(pauses[: len([at for at in looks if at <= 60])]) <= 5
    assert pauses == sorted(pauses) and pauses[-1] == 60 and len(looks) < 70


def test_a_page_that_is_closed_is_looked_for_once_more():
    """What is paid after that is found in its block, or at the deadline."""
    closed, looks, checked_at = NOW, list[int](), NOW
    for minute in range(1, 24 * 60):
        now = closed + timedelta(minutes=minute)
        watched = one(checked_at=checked_at, asked_since=ago(minutes=3), asked_at=closed)
        if urgency(watched, Pace(HOUR), now):
            looks.append(minute)
            checked_at = now
    assert looks == [3]


@pytest.mark.parametrize(
    ("watched", "reason"),
    [
        pytest.param(page(opened=30, looked=SECOND), PAGE, id="an open page"),
        pytest.param(page(looked=SECOND, asked_at=ago(minutes=3)), None, id="a closed one"),
        pytest.param(one(checked_at=NOW, came_at=ago(minutes=1)), MONEY, id="money on its way"),
        pytest.param(one(checked_at=NOW), None, id="nobody waits for it"),
    ],
)
def test_with_an_explorer_of_ones_own_who_waits_is_looked_for_in_every_run(watched, reason):
    assert not urgency(watched, pace_of(HOUR, OWN_PER_HOUR - 1), NOW)
    found = urgency(watched, pace_of(HOUR, OWN_PER_HOUR), NOW)
    assert (found and found.reason) == reason


def allowed(left: int, per_hour: int = 600, since_s: float | None = 60) -> Allowance:
    return Allowance(per_hour=per_hour, left=left, since_s=since_s)


@pytest.mark.parametrize(
    ("allowance", "at_once", "again"),
    [
        pytest.param(allowed(600), 65, 4, id="a quarter of what is above the pages' half"),
        pytest.param(allowed(600, since_s=None), 65, 4, id="the first run of all"),
        pytest.param(allowed(600, since_s=130), 130, 8, id="after two minutes twice as much"),
        pytest.param(allowed(600, since_s=3_600), 260, 260, id="after an hour everything"),
        pytest.param(allowed(340), 2, 4, id="what pages have in the hour is theirs"),
        pytest.param(allowed(85), 2, 3, id="and all that is left"),
        pytest.param(allowed(81), 1, 0, id="one, when no more is left"),
        pytest.param(allowed(80), 0, 0, id="none of what is kept for headers and blocks"),
        pytest.param(allowed(0), 0, 0, id="none when nothing is left"),
        pytest.param(allowed(40, per_hour=40), 3, 2, id="of a small budget a quarter is kept"),
        pytest.param(allowed(10, per_hour=40), 0, 0, id="and that is kept"),
    ],
)
def test_how_many_looks_a_run_may_make(allowance, at_once, again):
    assert shares(allowance) == (at_once, again)


def planned(watched: list[Watched], left: int = 10**6) -> tuple[list[str], list[str], int]:
    allowance = UNLIMITED if left == 10**6 else allowed(80 + left)
    return tuple(plan(watched, HOUR, allowance, NOW))  # type: ignore[return-value]


def test_only_who_waits_is_asked_for():
    watched = [one(f"idle{number}") for number in range(500)] + [page(looked=None)]
    assert planned(watched) == (["page"], [], 0)


def test_what_is_due_at_once_comes_in_the_order_in_which_it_was_due():
    watched = [one(f"end{n}", expires_at=ago(minutes=n)) for n in (1, 50, 3)]
    watched += [page(f"page{n}", opened=n, looked=None) for n in (2, 4)]
    assert planned(watched)[0] == ["end50", "page4", "end3", "page2", "end1"]
    assert planned(watched, 2)[0] == ["end50", "page4"]


def test_pages_that_stay_open_have_calls_of_their_own_however_many_deadlines_have_passed():
    watched = [one(f"end{n}", expires_at=ago(minutes=n + 1)) for n in range(500)]
    watched += [page(f"page{n}", opened=30, looked=10) for n in range(9)]
    ids, _, _ = planned(watched, 520)
    assert len(ids) == 65 + 4 and ids[65:] == ["page0", "page1", "page2", "page3"]


def test_a_page_that_was_opened_lately_comes_before_hundreds_of_older_ones():
    old = [page(f"old{n}", opened=180, looked=40) for n in range(300)]
    new = [page("hour", opened=59, looked=6), page("minutes", opened=10, looked=5)]
    ids, unreached, put_off = planned([*old, *new, page("new", opened=1, looked=None)], 520)
    assert ids[:3] == ["new", "minutes", "hour"] and len(ids) == 1 + 4
    assert len(unreached) == 298 and put_off == 0


def test_who_waits_for_more_than_five_minutes_is_told_and_who_waits_for_less_is_put_off():
    watched = [one("served", expires_at=ago(hours=2))]
    watched += [page(f"p{n}", opened=n, looked=None) for n in (4.9, 5, 5.1)]
    ids, unreached, put_off = planned(watched, 1)
    assert (ids, unreached, put_off) == (["served"], ["p5.1"], 2)


def test_without_a_call_left_nobody_is_asked_for_and_it_is_told():
    watched = [page("page", opened=9, looked=None), one("end", expires_at=ago(minutes=1))]
    assert planned(watched, 0) == ([], ["page"], 1)
