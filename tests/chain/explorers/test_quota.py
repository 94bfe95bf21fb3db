"""The quota of calls: counted across runs and processes, and what an explorer's refusal costs."""

import contextlib

import pytest

from btcpay.chain import pool
from btcpay.chain.explorers import endpoint
from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.explorers.quota import Quota, endpoint_name, sustainable_per_minute
from btcpay.chain.sources import Allowance, BudgetSpent
from btcpay.http import http_client
from btcpay.values.errors import ExplorerError, OutOfQuota
from btcpay.values.networks import NETWORKS
from storage.database import open_database
from storage.models import ExplorerUse
from tests.support.builders import at_once
from tests.support.fake_esplora import dropped, say

REGTEST = NETWORKS["regtest"]
NAME = "explorer:3000/api"


@pytest.fixture
def make(shop, clock):
    """A quota on the shop's database, as every new process has one."""
    return lambda per_hour=100: Quota(shop.service.db, per_hour, clock)


def spend(quota, calls, name=NAME):
    for _ in range(calls):
        quota.take(name)


def left(quota, *names):
    return quota.allowance(names or [NAME]).left


def test_a_call_beyond_the_hours_quota_is_refused(make):
    spend(make(), 100)
    with pytest.raises(BudgetSpent, match="asked 100 times"):
        make().take(NAME)


@pytest.mark.parametrize(("minutes", "free"), [(60, 0), (61, 100)])
def test_calls_are_free_again_when_their_minute_is_an_hour_old(
    make, clock, minutes, free
):
    clock.at = clock.at.replace(second=30)
    spend(make(), 100)
    clock.move(minutes=minutes, seconds=-29)
    assert left(make()) == free


def test_processes_that_spend_at_the_same_time_share_one_quota(shop, clock):
    def taken(_):
        db = open_database(shop.service.settings.database_url)
        quota = Quota(db, 100, clock)
        calls = 0
        with contextlib.suppress(BudgetSpent):
            while True:
                quota.take(NAME)
                calls += 1
        db.close()
        return calls

    assert sum(at_once(4, taken)) == 100


def test_what_a_clock_that_was_ahead_has_spent_binds_nobody(make, clock):
    clock.move(days=400)
    spend(make(), 100)
    make().note_refusal(NAME, 3600)
    clock.move(days=-400)
    assert make().allowance([NAME]) == Allowance(100, 100, 100 / 60)


def test_only_host_port_and_path_of_a_root_are_kept():
    assert endpoint_name("https://user:hunter2@explorer:3000/api?token=x#y") == NAME


LASTING = {
    "an hour of quiet": (600, {}, 10),
    "the same each minute": (0, dict.fromkeys(range(61), 10), 0),
    "and something is left": (10, dict.fromkeys(range(61), 10), 10),
    "four hundred just now": (200, {0: 400}, 200 / 60),
    "half an hour ago: they come back": (200, {30: 400}, 200 / 31),
}


@pytest.mark.parametrize(("left", "used", "minutely"), LASTING.values(), ids=LASTING)
def test_so_many_calls_a_minute_last_until_those_of_the_past_hour_come_back(
    left, used, minutely
):
    assert sustainable_per_minute(left, used) == minutely


def test_what_lasts_is_that_of_the_explorer_with_the_most(make, clock):
    spend(make(), 40)
    assert make().allowance([NAME]).minutely == 1
    assert make().allowance([NAME, "other/api"]).minutely == 100 / 60
    clock.move(minutes=61)
    assert make().allowance([NAME]).minutely == 100 / 60


def test_counts_of_calls_of_past_days_are_deleted(shop, make, clock):
    spend(make(), 1)
    clock.move(days=2)
    spend(make(), 1)
    make().forget()
    assert len(shop.service.db.rows(ExplorerUse.select())) == 1


def client(quota, *servers, paused=None):
    pause = (lambda s: None) if paused is None else paused.append
    return Explorers(
        REGTEST, [s.root for s in servers], http_client.Session(4), quota, pause
    )


def test_when_the_quota_of_one_is_spent_the_next_is_asked(make, first, second):
    spend(make(), 100, endpoint_name(first.root))
    second.tip = 7
    assert client(make(), first, second).ask(Esplora.tip_height) == 7
    assert first.asked == []


def test_a_question_that_meets_the_end_of_the_quota_is_not_answered_in_part(
    make, first
):
    first.histories["a"] = []
    spend(make(), 99, endpoint_name(first.root))
    with pytest.raises(OutOfQuota):
        client(make(), first).ask(lambda one: (one.tip_height(), one.tip_hash()))
    assert len(first.asked) == 1


@pytest.mark.parametrize("status", endpoint.REFUSALS)
def test_an_explorer_that_answers_429_gets_no_more_calls_in_this_run(
    make, first, second, status
):
    first.instead = lambda _: say("slow down", status)
    explorers = client(make(), first, second)
    for _ in range(3):
        assert explorers.ask(Esplora.tip_height) == second.tip
    assert len(first.asked) == 1


def refusals(make, first, clock, minutes):
    """Runs after so many minutes each; how often the explorer was asked."""
    for pause in minutes:
        clock.move(minutes=pause)
        with pytest.raises(ExplorerError):
            client(make(10_000), first).ask(Esplora.tip_height)
    return len(first.asked)


# For how many seconds it says that it wants to be left alone, the minutes before each run, and how
# often it is asked at least and at most.
REFUSALS: dict[str, tuple[int, list[float], int, int]] = {
    "after a first one the next run asks, and after a second not": (
        0,
        [0, 0, 0.7, 0.6],
        3,
        3,
    ),
    # 1, 2, 4, ... 32 minutes, then an hour each time.
    "in a row they lengthen the rest up to an hour": (0, [1] * 360, 9, 14),
    "for two minutes": (120, [0, 2 - 1 / 60], 1, 1),
    "and no longer": (120, [0, 2 - 1 / 60, 2 / 60], 2, 2),
    "for an hour at most": (999_999, [0, 60 - 1 / 60], 1, 1),
    "and not a second more": (999_999, [0, 60 - 1 / 60, 2 / 60], 2, 2),
}


@pytest.mark.parametrize(
    ("said_s", "minutes", "least", "most"), REFUSALS.values(), ids=REFUSALS
)
def test_an_explorer_that_refuses_gets_no_calls_for_a_while(
    make, first, clock, said_s, minutes, least, most
):
    first.instead = lambda _: say("slow down", 429, **{"Retry-After": str(said_s)})
    assert least <= refusals(make, first, clock, minutes) <= most


def test_a_run_without_a_refusal_forgets_those_before_it(make, first, clock):
    first.instead = lambda _: say("slow down", 429)
    refusals(make, first, clock, [0, 0])
    clock.move(minutes=2)
    first.instead = lambda _: None
    explorers = client(make(), first)
    assert explorers.ask(Esplora.tip_height) == first.tip
    explorers.close()
    asked = len(first.asked)
    first.instead = lambda _: say("slow down", 429)
    assert refusals(make, first, clock, [0, 0]) == asked + 2


def test_a_failure_is_asked_once_more_after_a_pause_and_longer_each_time(
    first, monkeypatch
):
    monkeypatch.setattr(pool.time, "monotonic", lambda: now[0])
    now = [100.0]
    paused = []

    def wait(seconds):
        paused.append(seconds)
        now[0] += seconds

    first.instead = lambda _: dropped
    explorers = Explorers(REGTEST, [first.root], http_client.Session(), None, wait)
    for _ in range(3):
        with pytest.raises(ExplorerError):
            explorers.ask(Esplora.tip_height)
    assert len(first.asked) == pool.PATIENCE == 6
    assert paused == [0.25, 0.5, 1, 2, 4]
    with pytest.raises(ExplorerError, match="failed 6 times in a row"):
        explorers.ask(Esplora.tip_height)
    assert len(first.asked) == 6


def test_a_rate_limiter_that_lets_the_first_calls_through_is_left_alone_longer_too(
    make, first, clock
):
    tokens = [0]

    def limited(_):
        tokens[0] -= 1
        return None if tokens[0] >= 0 else say("slow down", 429)

    first.instead = limited
    runs = 0
    for _ in range(120):
        clock.move(minutes=1)
        tokens[0] = 1
        explorers = client(make(10_000), first)
        before = len(first.asked)
        for _ in range(2):
            with contextlib.suppress(ExplorerError):
                explorers.ask(Esplora.tip_height)
        explorers.close()
        runs += len(first.asked) > before
    assert 5 <= runs <= 10


def test_calls_that_fail_together_count_as_one_failure(first):
    first.instead = lambda _: say("oops", 500)
    explorers = client(None, first)

    def fails(_):
        with pytest.raises(ExplorerError):
            explorers.ask(Esplora.tip_height)

    at_once(8, fails)
    first.instead = lambda _: None
    assert explorers.ask(Esplora.tip_height) == first.tip


def test_the_next_explorer_is_asked_before_anybody_waits(first, second):
    first.instead = lambda _: dropped
    paused: list[float] = []
    assert (
        client(None, first, second, paused=paused).ask(Esplora.tip_height) == second.tip
    )
    assert paused == [] and len(first.asked) == 1
