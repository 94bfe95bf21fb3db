"""A process that holds a lock is frozen, or slow: the next one takes over from the first alone."""

import signal
import subprocess
import sys
import time
from contextlib import closing, suppress

import psycopg
import pytest
from peewee import OperationalError

from btcpay.check.apply import try_apply
from btcpay.check.report import Report
from btcpay.settlement.values import Scan
from storage import heartbeat, locks
from storage.database import open_database
from storage.queries import meta
from tests.support.builders import clean_environ, until
from tests.support.paths import PROJECT

SILENCE_S = 3
BEAT_S = 0.3
PIPELINES = 2_000
LOCK = 7
# Takes the lock, writes, waits for a line, and goes on: within its transaction or after it.
HOLDER = f"""
import sys
from storage import heartbeat, locks
from storage.database import open_database
from storage.queries import meta

heartbeat.BEAT_S = {BEAT_S}
url, place = sys.argv[1:]
db = open_database(url)

def wait():
    print("holds the lock", flush=True)
    sys.stdin.readline()

with locks.only_one(db, url, "check"):
    with db.write():
        meta.put(db, meta.Key.LISTENS, "yes")
        if place == "within":
            wait()
            meta.put(db, meta.Key.NOT_BEGUN, "yes")
    if place == "after":
        wait()
        meta.put(db, meta.Key.NOT_BEGUN, "yes")
"""
LISTENS = meta.Key.LISTENS
NOT_BEGUN = meta.Key.NOT_BEGUN


@pytest.fixture
def db(url):
    with closing(open_database(url)) as opened:
        yield opened


@pytest.fixture
def start(url):
    processes = []

    def start(place):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, url, place],
            env=clean_environ(),
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout.readline() == "holds the lock\n", process.stderr.read()
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(heartbeat, "SILENCE_S", SILENCE_S)


def is_free(db, url):
    with locks.only_one(db, url, "check") as is_alone:
        return is_alone


@pytest.mark.parametrize(
    ("place", "kept"), [("within", None), ("after", "yes")], ids=["within", "after"]
)
def test_a_frozen_process_loses_lock_and_transaction_and_writes_no_more(
    db, url, start, place, kept
):
    process = start(place)
    process.send_signal(signal.SIGSTOP)
    until(lambda: is_free(db, url), "the lock", 4 * SILENCE_S)
    assert meta.get(db, LISTENS) == kept, "a commit is kept, what was open is undone"
    process.send_signal(signal.SIGCONT)
    _, errors = process.communicate("go on\n", timeout=60)
    assert process.returncode == 1
    assert "OperationalError" in errors or "InterfaceError" in errors
    assert meta.get(db, NOT_BEGUN) is None


@pytest.mark.parametrize("place", ["within", "after"])
def test_a_slow_process_keeps_lock_and_transaction(db, url, start, place):
    process = start(place)
    assert stays_locked(db, url)
    _, errors = process.communicate("go on\n", timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert (meta.get(db, LISTENS), meta.get(db, NOT_BEGUN)) == ("yes", "yes")


def silent_for(connection, seconds, state="idle%"):
    """True once the session's state is as old as that."""
    return until(
        lambda: connection.execute(
            "SELECT count(*) = 1 FROM pg_stat_activity WHERE state LIKE %s"
            " AND datname = current_database() AND pid <> pg_backend_pid()"
            " AND clock_timestamp() - state_change > make_interval(secs => %s)",
            [state, seconds],
        ).fetchone()[0],
        "the silence",
    )


@pytest.fixture
def other(url):
    with closing(open_database(url)) as opened:
        yield opened


def stays_locked(other, url):
    """True if the lock is held for twice the silence that a frozen process has."""
    end_s = time.monotonic() + 2 * SILENCE_S
    until(
        lambda: time.monotonic() > end_s or is_free(other, url),
        "twice the silence that a frozen one has",
    )
    return not is_free(other, url)


def test_a_transaction_that_hangs_is_silent_after_a_time_and_until_its_end(
    url, db, other, monkeypatch
):
    monkeypatch.setattr(heartbeat, "BEAT_S", BEAT_S)
    monkeypatch.setattr(heartbeat, "MOST_TRANSACTION_S", 0.5)
    with locks.only_one(db, url, "check"):
        with db.write(), psycopg.connect(url, autocommit=True) as watcher:
            meta.put(db, LISTENS, "yes")
            assert silent_for(watcher, 5 * BEAT_S)
        assert stays_locked(other, url), "it speaks again"


def test_no_beat_comes_between_the_statements_of_a_pipeline(url, db, monkeypatch):
    monkeypatch.setattr(heartbeat, "BEAT_S", 0)
    with locks.only_one(db, url, "check"):
        for turn in range(PIPELINES):
            with db.write():
                meta.put(db, LISTENS, str(turn))
                meta.put(db, NOT_BEGUN, str(turn))
    assert (meta.get(db, LISTENS), meta.get(db, NOT_BEGUN)) == (str(PIPELINES - 1),) * 2


@pytest.mark.parametrize("is_old", [False, True], ids=["young", "old"])
def test_in_a_transaction_that_is_old_the_limit_is_the_usual_one(
    url, db, monkeypatch, is_old
):
    monkeypatch.setattr(heartbeat, "SILENCE_S", 0.5)
    monkeypatch.setattr(heartbeat, "MOST_TRANSACTION_S", 0.2 if is_old else 60)
    with closing(psycopg.connect(url)) as holder, psycopg.connect(url) as other:
        holder.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        silent_for(other, 0.6)
        assert is_ended(db) == (not is_old)


@pytest.fixture
def holder(url, monkeypatch):
    """A session that holds LOCK; it is frozen after half a second of silence."""
    monkeypatch.setattr(heartbeat, "SILENCE_S", 0.5)
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        yield connection


def is_ended(db):
    with db.borrow_connection():
        return heartbeat.end_silent_holder(db, LOCK)


def test_one_that_froze_between_the_statements_of_a_pipeline_is_ended(url, db, holder):
    """Its server waits for the rest, in no state that a time-out of the server ends."""
    with psycopg.connect(url, autocommit=True) as other:
        with suppress(psycopg.OperationalError), holder.pipeline():
            holder.execute("BEGIN")
            holder.execute("DELETE FROM meta")
            holder.pgconn.flush()
            silent_for(other, 0.6, "active")
            assert is_ended(db)
        sessions = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        pid = holder.info.backend_pid
        until(lambda: not other.execute(sessions, [pid]).fetchone(), "its end")


def test_one_that_copies_rows_is_not_ended_while_it_makes_the_next(url, db, holder):
    with psycopg.connect(url, autocommit=True) as other:
        with holder.cursor() as cursor, cursor.copy("COPY meta FROM STDIN"):
            silent_for(other, 0.6, "active")
            assert not is_ended(db)
        assert holder.execute("SELECT 1").fetchone() == (1,)


def test_when_the_session_has_ended_no_invoice_counts_as_failed(till):
    """As for a check that was frozen: what it applied is applied by the next."""
    db = till.shop.service.db
    scans = {till.shop.invoice()["id"]: Scan(till.clock(), 100) for _ in range(2)}
    report = Report()
    with db.borrow_connection():
        pid = db.connection.connection().info.backend_pid
        with psycopg.connect(till.environ["BLOCKTILL_DATABASE_URL"]) as other:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        with pytest.raises(OperationalError):
            try_apply(db, till.settings, scans, till.clock(), report)
    assert report.failed == []
