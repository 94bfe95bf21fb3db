"""Backup and restore on PostgreSQL, by its own programs, with the commands of the documents.

In every run, whatever it is about: the server is real, and so are `pg_dump` and `pg_restore`.
"""

import contextlib
import os
import re
import subprocess
import sys
import threading

import pytest

from btcpay.merchants.sessions import log_in, new_login, session_of
from storage import locks
from storage.database import open_database
from storage.queries import merchants
from storage.queries.sessions import BY_SECRET
from tests.support import postgres
from tests.support.databases import raw
from tests.support.fake_esplora import Terminal, open_till
from tests.support.other_database import on
from tests.support.paths import PROJECT

BACKUP = (PROJECT / "docs/operators/backup.md").read_text(encoding="utf-8")
NEW = "createdb --owner blocktill --encoding UTF8 --template template0 blocktill"


def commands(lines):
    """The commands of a block, one a line; what makes a user or installs is left out."""
    found = re.findall(r"^\$ (.*)$", lines, re.M)
    return "\n".join(
        line for line in found if not re.search("createuser|pip install", line)
    )


def blocks(heading):
    """The commands of each block below a heading of docs/operators/backup.md."""
    section = BACKUP.partition(f"{heading}\n")[2].partition("\n## ")[0]
    return [
        commands(lines) for lines in re.findall(r"```console\n(.*?)```", section, re.S)
    ]


DUMP, RESTORE = blocks("### PostgreSQL")
(CARRY_OVER,) = blocks("## From SQLite to PostgreSQL")
SERVER = (PROJECT / "docs/operators/postgresql.md").read_text(encoding="utf-8")
PAGE = SERVER.split("## Failover")[1]
FAILOVER = commands(re.search(r"```console\n(.*?)```", PAGE, re.S)[1])


class Machine:
    """A shell in a folder, with PostgreSQL's programs; `sudo` and `systemctl` do not matter."""

    def __init__(self, folder, environ):
        self.folder = folder
        self.port = postgres.server().port
        tools = folder / "tools"
        tools.mkdir()
        for name, does in {
            "blocktill": f'exec {sys.executable} -m btcpay "$@"',
            "sudo": 'shift 2; exec "$@"',
            "systemctl": "exit 0",
        }.items():
            (tools / name).write_text(f"#!/bin/sh\n{does}\n")
            (tools / name).chmod(0o755)
        self._environ = environ | {
            "PATH": f"{tools}:{postgres.PROGRAMS}:{os.environ['PATH']}", "PYTHONPATH": str(PROJECT),
            "PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": postgres.USER,
            "PGDATABASE": "postgres",
        }  # fmt: skip

    def run(self, script, status=0, **environ):
        """All that it said; it stops at the first command that fails."""
        script = re.sub(
            r"(127\.0\.0\.1|10\.0\.0\.6):5432", f"127.0.0.1:{self.port}", script
        )
        ended = subprocess.run(
            ["bash", "-c", f"set -eu\n{script}"],
            input="y\n",
            env=self._environ | environ,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        assert ended.returncode == status, ended.stdout
        return ended.stdout


@pytest.fixture
def url():
    """The BLOCKTILL_DATABASE_URL of the database that has the documents' name."""
    url = postgres.server().url("blocktill")
    yield url
    for made in (url, f"{url}_before"):
        postgres.server().drop(made)


@pytest.fixture
def made_by_commands(url, tmp_path):
    """The database is made as README says."""
    Machine(tmp_path, {"BLOCKTILL_DATABASE_URL": url}).run(f"{NEW}\nblocktill migrate")


@pytest.fixture
def copied(url):
    """The database is a copy of one that is migrated, which takes a tenth of the time."""
    postgres.server().create(name="blocktill")


@pytest.fixture
def till(url, tmp_path, ticker, clock):
    """A shop on the database, which another fixture has made."""
    with open_till(tmp_path, ticker, clock, BLOCKTILL_DATABASE_URL=url) as opened:
        yield opened


@pytest.fixture
def machine(till, tmp_path):
    (tmp_path / "machine").mkdir()
    return Machine(tmp_path / "machine", till.shop.environ)


@contextlib.contextmanager
def selling(till):
    """Two threads that make invoices meanwhile: fewer than a restore looks ahead."""
    stop = threading.Event()

    def sell():
        for _ in range(40):
            if not stop.is_set():
                till.shop.invoice()

    threads = [threading.Thread(target=sell) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def addresses(till):
    rows = till.shop.sql(
        "SELECT deposit_address FROM invoice ORDER BY address_index"
    ).fetchall()
    return [address for (address,) in rows]


def next_index(till):
    return till.shop.service.db.get(
        merchants.BY_ID, id=till.shop.merchant_id
    ).next_index


def test_an_old_dump_is_restored_and_no_paid_address_is_given_out_again(
    made_by_commands, till, machine
):
    known = till.shop.invoice()
    with selling(till):
        machine.run(DUMP)
    assert (machine.folder / "monday.dump").stat().st_mode & 0o777 == 0o600
    lost = [till.shop.invoice() for _ in range(70)]
    for invoice in (known, lost[0], lost[60]):
        till.pay(invoice)
    till.mine()
    till.pay(lost[65])  # still in the mempool
    till.check()
    given_out = addresses(till)
    till.shop.close()
    said = machine.run(RESTORE)
    with on(till.settings.database_url, till) as again:
        kept = addresses(again)  # those of one moment, and no others
        assert kept == given_out[: len(kept)] and len(kept) <= len(given_out) - len(
            lost
        )
        last = given_out.index(lost[65]["deposit_address"])
        assert next_index(again) == last + 1 + 100 and f"seen up to {last}" in said
        assert again.shop.invoice()["deposit_address"] not in given_out
        assert again.look(known)["status"] == "open"
        assert again.check().new_statuses == {known["id"]: "paid"}
        assert again.shop.get(f"/invoices/{lost[0]['id']}").status_code == 404
        assert "totals of shop: " in Terminal(again).run("doctor", "--integrity")[0]
    with raw(f"{till.settings.database_url}_before") as connection:  # is kept
        found = connection.execute("SELECT count(*) AS n FROM invoice").fetchone()
    assert found["n"] == len(given_out)


def test_blocktill_backup_names_the_program_that_does_it(copied, till, machine):
    said = machine.run("blocktill backup monday.db", status=1)
    assert "use pg_dump, as docs/operators/backup.md says" in said
    assert not (machine.folder / "monday.db").exists()


def test_after_a_failover_that_lost_commits_no_address_is_given_out_again(
    copied, till, machine
):
    """The standby has the database as it was before the last invoices, and takes over its name."""
    known = till.shop.invoice()
    url = till.settings.database_url
    till.shop.close()
    standby = postgres.server().create("blocktill")
    with on(url, till) as primary:
        lost = [primary.shop.invoice() for _ in range(30)]
        for invoice in (known, lost[3], lost[27]):
            till.pay(invoice)
        till.mine()
        primary.check()
        given_out = addresses(primary)
    with on(standby, till) as again:
        assert next_index(again) == 1  # as it stands, it would hand them out once more
        said = machine.run(FAILOVER, BLOCKTILL_DATABASE_URL=standby)
        assert "seen up to 28 on the chain; it will be 129" in said
        assert f"{known['id']} is paid" in said
        fresh = [again.shop.invoice()["deposit_address"] for _ in range(3)]
        assert not set(fresh) & set(given_out)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_in_place_the_counters_are_moved_and_nobody_stays_logged_in(
    database, tmp_path, ticker, clock
):
    made = (
        f"sqlite:///{tmp_path}/x.db"
        if database == "sqlite"
        else postgres.server().create()
    )
    with open_till(tmp_path, ticker, clock, BLOCKTILL_DATABASE_URL=made) as till:
        till.pay(till.shop.invoice())
        till.shop.sql("UPDATE merchant SET next_index = 0")
        db = till.shop.service.db
        now = till.clock()
        session = log_in(
            db, new_login(db, till.shop.merchant_id, now), "", "Firefox", now
        )
        words = ("restore", "--in-place", "--yes", "--skip", "3")
        refused = Terminal(till).run(
            *words, status=1, BLOCKTILL_EXPLORERS="http://127.0.0.1:9"
        )[1]
        assert (
            "nothing was changed, the chain must be asked" in refused
            and next_index(till) == 0
        )
        with locks.only_one(
            open_database(made), made, "check"
        ):  # beside it, and the service
            output, said = Terminal(till).run(*words)
        assert "moved the counters" in output and "it will be 4" in said
        assert next_index(till) == 4
        assert session_of(db, BY_SECRET, session, now) is None


def test_from_sqlite_to_postgresql_by_the_commands_of_backup_md(
    url, tmp_path, ticker, clock
):
    before = f"sqlite:///{tmp_path}/blocktill.db"
    with open_till(tmp_path, ticker, clock, BLOCKTILL_DATABASE_URL=before) as till:
        known = till.shop.invoice()
        (tmp_path / "machine").mkdir()
        machine = Machine(tmp_path / "machine", till.shop.environ)
        machine.run(NEW)
        machine.run(CARRY_OVER)
        with on(url, till) as again:
            till.pay(known)
            till.mine()
            assert again.check().new_statuses == {known["id"]: "paid"}
            assert next_index(again) == 101
