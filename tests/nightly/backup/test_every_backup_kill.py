"""Whenever a restore dies, the database is the old one or the new one.

The processes are real and so is their death, by SIGKILL. As a script this file is what they come
from (see forge.py).
"""

import itertools
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from btcpay.backup import address_counters
from storage import versions
from storage.backup import into_empty
from storage.database import open_database
from storage.queries import merchants
from tests.support import postgres
from tests.support.fake_esplora import Terminal
from tests.support.forge import Forge, fork_for_each_order, program
from tests.support.other_database import backed_up, change, content, lived_in, rows_of

LOOKED_UP = 5  # addresses: a hundred calls of the explorer would only take longer


def kill(what):
    os.write(2, f"killed {what}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


def die(order):
    """Restores, and is killed before the statement or row of this number, or before this text.

    Or amid the last copy's pages. One that lives says how many statements and rows there were.
    """
    address_counters.LOOK_AHEAD = LOOKED_UP
    numbers = itertools.count(1)
    copies_begun = itertools.count(1)

    def count(sql):
        if next(numbers) == order["at"] or sql == order["at"]:
            kill(f"before {sql}")

    class Mortal(sqlite3.Connection):
        def backup(self, target, **_):
            pages = itertools.count(1)
            is_last = next(copies_begun) == 3

            def progress(*_):
                if is_last and next(pages) == order["page"]:
                    kill(f"at page {order['page']}")

            super().backup(target, pages=1, progress=progress)

    def connect(*args, **kwargs):
        connection = opened(*args, **kwargs | {"factory": Mortal})
        connection.set_trace_callback(count)
        return connection

    def counted(kind, name):
        living: Callable[..., Any] = getattr(kind, name)

        def method(self, said, *args, **kwargs):
            count(said)
            return living(self, said, *args, **kwargs)

        setattr(kind, name, method)

    if order["server"]:
        counted(psycopg.Cursor, "execute")
        counted(psycopg.Copy, "write_row")
    else:
        opened = sqlite3.connect
        sqlite3.connect = connect
    try:
        if order["by_browser"]:
            fill_empty(*order["words"])
        else:
            program(order)
    finally:
        os.write(2, f"counted {next(numbers) - 1}\n".encode())


def fill_empty(file, url):
    """What a browser's request does with a shop that has no merchant yet."""
    into_empty.carry_over(Path(file), open_database(url), lambda: None)


@pytest.fixture(scope="module")
def forge():
    with closing(Forge(__file__)) as opened:
        yield opened


@pytest.fixture
def restore(till, forge):
    """The output of a process that restores the file into a database, and may die."""

    def run(file, url, at=0, page=0, by_browser=False):
        environ = Terminal(till).environ | {"BLOCKTILL_DATABASE_URL": url}
        words = ["restore", str(file), "--yes", "--skip", str(LOOKED_UP)]
        if by_browser:
            words = [str(file), url]
        return forge.run(
            environ,
            words,
            at=at,
            page=page,
            server=url.startswith("postgresql"),
            by_browser=by_browser,
        ).errors

    return run


@pytest.mark.parametrize("page_size", [2048, 4096])
def test_a_file_is_the_old_database_or_the_new_one(till, tmp_path, restore, page_size):
    """In WAL mode; the backup has pages of its size, or of another one."""
    till.shop.invoice()
    file = backed_up(till, tmp_path / "kept.db")
    old = tmp_path / "old.db"
    whole = tmp_path / "whole.db"
    shutil.copy(file, old)
    change(old, "UPDATE invoice SET description = 'of the old one'")
    change(old, "PRAGMA journal_mode = wal")
    change(file, f"PRAGMA page_size = {page_size}", "VACUUM")
    shutil.copy(old, whole)
    last = int(restore(file, f"sqlite:///{whole}").rpartition("counted ")[2])
    assert last > 50
    before = content(old)
    after = content(whole)["invoice"]
    deaths = [{"at": at} for at in range(last // 8, last - 6, last // 24)]
    deaths += [{"at": last - back} for back in range(6)] + [
        {"page": page} for page in (1, 9, 40)
    ]
    outcomes = set()
    for number, death in enumerate(deaths):
        place = tmp_path / str(number) / "place.db"
        place.parent.mkdir()
        shutil.copy(old, place)
        assert "killed" in restore(file, f"sqlite:///{place}", **death), death
        found = content(place)
        outcomes.add("old" if found == before else "new")
        assert found == before or found["invoice"] == after, death
    assert "old" in outcomes
    # The next one is not disturbed by what the last one left.
    restore(file, f"sqlite:///{place}")
    assert content(place)["invoice"] == after
    assert not list(place.parent.glob(".*"))


def test_a_servers_database_stays_empty_or_has_all_of_it(till, tmp_path, restore):
    lived_in(till, tmp_path)
    file = backed_up(till, tmp_path / "kept.db")
    whole = postgres.server().create()
    target = postgres.server().create()
    for url in (whole, target):
        versions.open_ready(url, "regtest").close()
    last = int(restore(file, whole).rpartition("counted ")[2])
    assert last > 60
    before = rows_of(target)
    after = rows_of(whole)["invoice"]
    for at in (*range(last // 3, last, last // 24), last - 3, "COMMIT"):
        said = restore(file, target, at)
        assert "killed before" in said and rows_of(target) == before, said
    restore(file, target)
    assert rows_of(target)["invoice"] == after
    assert not list(tmp_path.glob(".kept*"))  # nor what the killed ones left


def test_an_empty_shop_in_use_stays_empty_or_has_all_of_it(till, tmp_path, restore):
    """As a browser restores it: another connection has the file open all the time."""
    lived_in(till, tmp_path)
    file = backed_up(till, tmp_path / "kept.db")
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("whole", "target")]
    for url in urls:
        versions.migrate(url, "regtest")
    whole, target = urls
    said = restore(file, whole, by_browser=True)
    last = int(said.rpartition("counted ")[2])
    assert last > 60
    after = rows_of(whole)
    assert after["invoice"] == rows_of(f"sqlite:///{file}")["invoice"]
    with closing(open_database(target)) as service:
        assert not service.rows(merchants.ALL)
        before = rows_of(target)
        for moment in (*range(last // 4, last, last // 8), last - 1, last):
            said = restore(file, target, moment, by_browser=True)
            assert "killed before" in said and rows_of(target) == before, said
            assert not service.rows(merchants.ALL)
        restore(file, target, by_browser=True)
        assert len(service.rows(merchants.ALL)) == 1
        assert rows_of(target) == after


if __name__ == "__main__":
    fork_for_each_order(die)
