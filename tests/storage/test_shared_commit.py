"""Transactions of several threads share a commit, and a fault stays with the thread whose it is."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from builders import until
from databases import empty_database
from peewee import IntegrityError

from btcpay.values.errors import Conflict
from storage import migrate
from storage.database import open_database
from storage.queries import merchants

COLUMNS = {"descriptor": "wpkh(x)", "next_index": 0, "created_at": 0}


@pytest.fixture
def db(tmp_path):
    url = empty_database(tmp_path)
    migrate.migrate(url, "regtest")
    opened = open_database(url)
    yield opened
    opened.close()


def at_once(db, names):
    """Adds merchants of these names, each in a thread of its own; all come while one writes."""

    def add(name):
        db.run(merchants.ADD, name=name, account_key=f"{name} {len(kept)}", **COLUMNS)
        kept.append(name)
        if name == "refused":
            raise Conflict("not this one")
        return f"{name} by {threading.get_ident()}"

    def ask(name):
        try:
            return db.written(lambda: add(name))
        finally:
            db.close()

    kept: list[str] = []
    with ThreadPoolExecutor(len(names)) as pool:
        with db.write():
            asked = [pool.submit(ask, name) for name in names]
            until(lambda: len(db._turn._waiting) == len(names), "all threads to queue")
        return asked


def stored(db):
    return sorted(row.name for row in db.rows(merchants.ALL))


def test_what_waits_for_the_disk_together_is_committed_together(db, monkeypatch):
    commits, commit = [], db.connection.commit
    monkeypatch.setattr(db.connection, "commit", lambda: (commits.append(1), commit()))
    texts = [asked.result() for asked in at_once(db, "abcde")]
    assert [text[0] for text in texts] == list("abcde")
    assert len({text.partition(" by ")[2] for text in texts}) == 1, "one thread wrote for all"
    assert len(commits) == 2, "the commit that they waited for, and theirs"
    assert stored(db) == list("abcde")


def test_who_is_refused_keeps_nobody_else_from_being_stored(db):
    first, refused, last = at_once(db, ["a", "refused", "b"])
    with pytest.raises(Conflict, match="not this one"):
        refused.result()
    assert (first.result()[0], last.result()[0], stored(db)) == ("a", "b", ["a", "b"])


def test_a_row_that_the_schema_refuses_keeps_nobody_else_from_being_stored(db):
    first, same, last = at_once(db, ["a", "a", "b"])
    assert [type(asked.exception()) for asked in (first, same)].count(IntegrityError) == 1
    assert (last.result()[0], stored(db)) == ("b", ["a", "b"])


def test_within_a_transaction_nobody_elses_order_is_a_part_of_it(db):
    """Whoever waits would be answered, and then lose what was stored when the outer one fails."""

    def add(name):
        def do():
            db.run(merchants.ADD, name=name, account_key=name, **COLUMNS)
            return name

        return db.written(do)

    def ask():
        try:
            return add("other")
        finally:
            db.close()

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(Conflict), db.write():
            other = pool.submit(ask)
            until(lambda: len(db._turn._waiting) == 1, "the other to queue")
            add("mine")
            raise Conflict("the outer one fails")
        assert other.result() == "other"
    assert stored(db) == ["other"]


def test_a_single_one_is_a_transaction_of_its_own(db):
    with pytest.raises(Conflict):
        at_once(db, ["refused"])[0].result()
    assert stored(db) == []
    assert at_once(db, "a")[0].result()[0] == "a"
    assert stored(db) == ["a"]
