"""Runs of one process that find nothing: they commit nothing but a time, now and then."""

import json
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from btcpay.chain.belief import judge_clock
from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.explorers.quota import Quota, Reserve, endpoint_name
from btcpay.chain.sources import BudgetSpent
from btcpay.check.record import RunRecord, renew_after
from btcpay.check.report import Report
from btcpay.health.state import state_in
from btcpay.http import http_client
from btcpay.values.finding import GREEN
from btcpay.values.times import start_of_hour
from storage.database import open_database, sqlite_path
from storage.queries import blocks, meta, sources
from storage.queries.meta import Key
from storage.queries.totals import tallies
from tests.support.builders import clean_environ
from tests.support.databases import about_sqlite
from tests.support.paths import PROJECT

pytestmark = pytest.mark.both_databases

RENEWED = timedelta(minutes=5)
WARM_UP = 12  # runs, until enough calls are counted in advance


class Watch:
    """The runs of one `check --watch`."""

    def __init__(self, till):
        self.till = till
        self.record = RunRecord(RENEWED)
        self.quota = Quota(till.shop.service.db, 10_000, till.clock, Reserve(1_000))

    def run(self):
        till = self.till
        explorers = Explorers(
            till.settings.network,
            till.settings.explorers,
            http_client.Session(4),
            self.quota,
        )
        checker = replace(till.checker(explorers=explorers), record=self.record)
        report = checker.run()
        checker.finish(report)
        return report


@pytest.fixture
def watch(till):
    made = Watch(till)
    for _ in range(WARM_UP):
        assert made.run().complete
    return made


@about_sqlite
def test_a_run_that_finds_nothing_commits_nothing_for_five_minutes(watch):
    till = watch.till
    path = sqlite_path(till.settings.database_url)
    with closing(sqlite3.connect(path)) as other:

        def commits():
            return other.execute("PRAGMA data_version").fetchone()

        for _ in range(2):
            before = commits()
            for _ in range(3):
                till.clock.move(seconds=60)
                watch.run()
            assert commits() == before
            till.clock.move(seconds=120)
            watch.run()
            assert commits() != before
            assert meta.time(till.shop.service.db, Key.CHECKED_MS) == till.clock()


def test_meanwhile_the_shop_is_well(watch):
    till = watch.till
    every = timedelta(seconds=15)
    most = renew_after(till.settings, 15) + 2 * every
    db = till.shop.service.db
    assert state_in(db, till.settings, till.clock() + most).check == GREEN


def test_a_block_that_is_read_is_stored_at_once_with_the_time_of_the_run(watch):
    till = watch.till
    till.shop.invoice()
    till.clock.move(seconds=15)
    till.mine()
    assert watch.run().blocks_read
    db = till.shop.service.db
    for key in (Key.CHECKED_MS, Key.READ_MS, Key.RAN_MS):
        assert meta.time(db, key) == till.clock()


def commits_of(path):
    """The bytes of pages in each commit of the write-ahead log (SQLite's file format)."""
    log = path.with_name(f"{path.name}-wal").read_bytes()
    page_bytes = int.from_bytes(log[8:12])
    salts = log[16:24]
    sizes = [0]
    for start in range(32, len(log), 24 + page_bytes):
        frame = log[start : start + 24]
        if frame[8:16] != salts:
            break  # of an earlier use of the log
        sizes[-1] += page_bytes
        if any(frame[4:8]):
            sizes.append(0)
    return sizes[:-1]


@about_sqlite
def test_a_block_that_need_not_be_read_is_one_commit(watch):
    till = watch.till
    path = sqlite_path(till.settings.database_url)
    watch.quota.reserve.fill(endpoint_name(till.settings.explorers[0]), 1_000)
    before = commits_of(path)
    for _ in range(3):
        till.clock.move(seconds=15)
        till.mine()
        assert watch.run().has_new_tip
    after = commits_of(path)
    assert after[: len(before)] == before and len(after) == len(before) + 3
    assert max(after[len(before) :]) <= 16_384


@about_sqlite
def test_blocks_that_are_skipped_are_stored_once_an_hour(watch):
    till = watch.till
    db = till.shop.service.db
    start = start_of_hour(till.clock.at) + timedelta(hours=1)
    till.clock.move(seconds=(start - till.clock.at).total_seconds() + 60)
    till.mine(6)
    unread = []
    for _ in range(20):
        till.clock.move(minutes=10)
        watch.run()
        unread.append(db.get(blocks.UNREAD)[0])
    assert set(unread[:17]) == {unread[0]} and unread[-1] == 0


def test_while_a_page_is_open_it_shows_when_the_chain_was_read_last(watch):
    till = watch.till
    invoice = till.shop.invoice()
    till.open_page(invoice)
    till.clock.move(seconds=5)
    watch.run()
    assert meta.time(till.shop.service.db, Key.READ_MS) == till.clock()


def complete(at, **fields):
    return Report(has_tip=True, tip_asked_at=at, read_at=at, **fields)


def note(shop, record, report, listens=""):
    record.note(shop.service.db, report, listens, shop.clock())


def checks(shop):
    rows = shop.service.db.rows(tallies.ALL)
    return Counter({row.label: row.total for row in rows if row.name == "checks"})


def test_a_failure_is_noted_at_once_and_when_the_run_before_was_complete(shop):
    record = RunRecord(RENEWED)
    note(shop, record, complete(shop.clock()))
    shop.clock.move(minutes=2)
    completed_at = shop.clock()
    note(shop, record, complete(completed_at))
    assert meta.time(shop.service.db, Key.CHECKED_MS) != completed_at
    shop.clock.move(minutes=1)
    note(shop, record, Report(chain_failed=True))
    assert meta.time(shop.service.db, Key.CHECKED_MS) == completed_at
    assert meta.time(shop.service.db, Key.RAN_MS) == shop.clock()
    assert checks(shop) == {"complete": 2, "incomplete": 1}


def test_what_another_process_has_noted_later_is_kept(shop):
    record = RunRecord(RENEWED)
    note(shop, record, complete(shop.clock()))
    shop.clock.move(minutes=1)
    meta.put_time(shop.service.db, Key.CHECKED_MS, shop.clock())
    note(shop, record, Report(chain_failed=True))
    assert meta.time(shop.service.db, Key.CHECKED_MS) == shop.clock()


def test_beside_a_process_whose_runs_fail_the_time_of_complete_runs_goes_on(shop):
    here = RunRecord(RENEWED)
    there = RunRecord(RENEWED)
    for _ in range(12):
        shop.clock.move(minutes=1)
        note(shop, there, Report(chain_failed=True))
        note(shop, here, complete(shop.clock()))
    checked_at = meta.time(shop.service.db, Key.CHECKED_MS)
    assert shop.clock() - checked_at < RENEWED


@pytest.mark.parametrize(
    ("report", "listens"),
    [
        ({"looked_at": 1}, ""),
        ({"blocks_read": 1}, ""),
        ({"unreached": ["inv_1"]}, ""),
        ({}, "yes"),
    ],
    ids=["a look", "a block", "a page that was not looked up", "it listens now"],
)
def test_news_are_noted_at_once(shop, report, listens):
    record = RunRecord(RENEWED)
    runs = [({}, "", True), ({}, "", False), (report, listens, True)]
    for news, now_listens, is_noted in runs:
        shop.clock.move(seconds=15)
        note(shop, record, complete(shop.clock(), **news), now_listens)
        ran_at = meta.time(shop.service.db, Key.RAN_MS)
        assert (ran_at == shop.clock()) == is_noted


def test_totals_wait_for_the_next_note_or_the_end(shop):
    record = RunRecord(RENEWED)
    for _ in range(3):
        note(shop, record, complete(shop.clock()))
    assert checks(shop) == {"complete": 1}
    record.flush(shop.service.db)
    assert checks(shop) == {"complete": 3}


def test_totals_are_stored_once_an_hour_while_nothing_happens(shop):
    record = RunRecord(RENEWED)
    stored = []
    for _ in range(14):
        note(shop, record, complete(shop.clock()))
        stored.append(checks(shop)["complete"])
        shop.clock.move(minutes=5)
    assert stored == [1] * 12 + [13] * 2


def test_the_failures_of_an_explorer_are_stored_with_the_next_time_of_a_run(shop):
    db = shop.service.db
    record = RunRecord(RENEWED)
    note(shop, record, complete(shop.clock()))
    stored = []
    for _ in range(3):
        shop.clock.move(minutes=5)
        record.count(db, Counter({("explorer_failures", "a"): 20}))
        note(shop, record, complete(shop.clock()))
        rows = db.rows(tallies.ALL)
        stored += [row.total for row in rows if row.name == "explorer_failures"]
    assert stored == [20, 40, 60]


def test_the_time_of_a_new_tip_is_kept_until_it_is_stored(shop):
    db = shop.service.db
    record = RunRecord(RENEWED)
    note(shop, record, complete(shop.clock()))
    assert record.silence(db, "tip", "10 boot") == timedelta()
    assert record.silence(db, "tip", "70 boot") == timedelta(minutes=1)
    assert meta.get(db, Key.TIP_SINCE) is None
    shop.clock.move(minutes=5)
    note(shop, record, complete(shop.clock()))
    assert RunRecord().silence(db, "tip", "130 boot") == timedelta(minutes=2)
    assert RunRecord().silence(db, "another", "130 boot") == timedelta()


def test_a_clock_that_is_believed_is_stored_each_hour(shop):
    db = shop.service.db
    network = shop.service.settings.network

    def stored_ms():
        return json.loads(meta.get(db, Key.TIME_BELIEVED))["clock_ms"]

    assert judge_clock(db, network, shop.clock(), "0 x", True) == ""
    first_ms = stored_ms()
    for minutes, is_stored in ((59, False), (1, True)):
        shop.clock.move(minutes=minutes)
        assert judge_clock(db, network, shop.clock(), "0 x", True) == ""
        assert (stored_ms() != first_ms) == is_stored


def used(db):
    return sum(row.calls for row in db.rows(sources.USED, after=0, now=2**53))


def test_calls_are_counted_before_they_are_made_and_never_more_than_the_quota(shop):
    db = shop.service.db
    quota = Quota(db, 100, shop.clock, Reserve(30))
    counted = []
    for made in range(1, 101):
        quota.take("explorer")
        assert used(db) >= made
        counted.append(used(db))
    assert counted[:8] == [1, 3, 3, 7, 7, 7, 7, 15]
    assert max(b - a for a, b in zip(counted, counted[1:], strict=False)) <= 30
    with pytest.raises(BudgetSpent):
        quota.take("explorer")
    with pytest.raises(BudgetSpent):
        Quota(db, 100, shop.clock).take("explorer")


KILLED = """
import os, signal, sys
from storage.database import open_database
from storage.queries import meta
db = open_database(sys.argv[1])
with db.unforced(), db.write():
    meta.put(db, meta.Key.LISTENS, "yes")
os.kill(os.getpid(), signal.SIGKILL)
"""


@about_sqlite
def test_what_is_not_forced_onto_the_disk_survives_the_process(shop):
    url = shop.service.settings.database_url
    command = [sys.executable, "-c", KILLED, url]
    killed = subprocess.run(command, cwd=PROJECT, env=clean_environ(), check=False)
    assert killed.returncode == -signal.SIGKILL
    with closing(open_database(url)) as db:
        assert meta.get(db, Key.LISTENS) == "yes"


@about_sqlite
def test_only_what_may_be_lost_is_not_forced_onto_the_disk(shop):
    db = shop.service.db

    def level():
        return db.connection.execute_sql("PRAGMA synchronous").fetchone()[0]

    normal = 1
    full = 2
    with pytest.raises(KeyError), db.unforced():
        assert level() == normal
        raise KeyError
    assert level() == full
