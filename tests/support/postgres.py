"""A real PostgreSQL server of the tests' own, and a database of it for each test that wants one.

Debian's programs, in a temporary folder, as the user `postgres` where the tests are root's; it
listens on a free port of 127.0.0.1 and never waits for the disk. A packaged cluster that runs on
the same machine is not touched.
"""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest
from ports import free_port

from storage import migrate

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/lib/postgresql"))
# What a crash would need is left out: the server's end is the end of its data.
FAST = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "max_connections": "200"}
END = 'read _; "$0" --mode immediate --pgdata "$1/data" stop; rm -r "$1"'
USER = "btcpay"
TEMPLATE = "migrated"  # what new databases are copies of
# Emptying takes a tenth of the time that a new database does. Not for ever, since what was deleted
# stays in its files; and not for a test that wants many at once.
TIMES, AT_ONCE = 30, 8
# What a schema is made of: none of it is written again unless somebody changes it. Of what
# PostgreSQL brings itself only that part is looked at which is cheap to read.
PARTS = (
    *("namespace", "class", "constraint", "index", "inherits", "trigger", "rewrite", "attrdef"),
    *("type", "sequence", "policy", "default_acl", "event_trigger", "extension", "publication"),
    *("statistic", "statistic_ext", "largeobject_metadata", "db_role_setting"),
)
SCHEMA = " UNION ALL ".join(
    f"SELECT count(*), max(xmin::text::bigint) FROM {part}"  # noqa: S608
    for part in (
        *(f"pg_{part}" for part in PARTS),
        "pg_attribute WHERE attrelid >= 16384",
        "pg_proc WHERE oid >= 16384",
        "pg_database WHERE datname = current_database()",
        "schema_version",  # the one table that is not empty
    )
)
OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_numbers = itertools.count(1)


class Lent:
    """A copy of TEMPLATE that one test after another may have, and the one connection that stays.

    Each test has a role of its own: what still runs of an earlier one cannot come back.
    """

    def __init__(self, name: str, url: str) -> None:
        self.name, self.role, self._left = name, "", TIMES
        # Without foreign keys, so that tables can be emptied in any order.
        options = "-c session_replication_role=replica"
        self.keeper = psycopg.connect(url, autocommit=True, options=options)
        self._as_made = self._rows(SCHEMA)
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        self._empty = ";".join(
            f"DELETE FROM {table}"  # noqa: S608
            for (table,) in self._rows(tables)
            if table != "schema_version"
        )
        self._empty += "; SELECT setval(seqrelid::regclass, seqstart, false) FROM pg_sequence"

    def let_in(self) -> None:
        """The next test may log in."""
        self.role = f"role{next(_numbers)}"
        self.keeper.execute(f"CREATE ROLE {self.role} SUPERUSER LOGIN")

    def is_as_new(self) -> bool:
        """Sends everybody away and empties it; False when in doubt that it can be lent again."""
        self._left -= 1
        deadline_s = time.monotonic() + 20
        try:
            self.keeper.execute(f"DROP ROLE {self.role}")  # refused when it owns something
            while self._rows(OTHERS):
                if time.monotonic() > deadline_s:
                    return False
                time.sleep(0.001)
            if self._left == 0 or self._rows(SCHEMA) != self._as_made:
                return False
            self.keeper.execute(self._empty)
        except psycopg.Error:
            return False
        return True

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.keeper.execute(statement, prepare=True).fetchall()


class Server:
    """Runs until the process that made it ends; `restart` ends every connection."""

    def __init__(self) -> None:
        self.made: set[str] = set()
        self._admin: psycopg.Connection | None = None
        self._lent: dict[str, Lent] = {}  # by name
        self._idle: list[Lent] = []
        self._user = pwd.getpwnam("postgres").pw_uid if os.getuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="btcpay-postgres-", dir=in_memory()))
        if os.getuid() == 0:
            shutil.chown(self._folder, "postgres")
        self.port = free_port()
        self._run("initdb", "--username", USER, "--auth=trust", "--encoding=UTF8", "--no-sync")
        with (self._folder / "data/postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in FAST.items())
            file.write(f"unix_socket_directories = '{self._folder}'\nport = {self.port}\n")
        self.start()
        # However the tests end, the pipe to this one breaks then.
        self._mourner = subprocess.Popen(
            ["/bin/sh", "-c", END, str(PROGRAMS / "pg_ctl"), str(self._folder)],
            user=self._user,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def url(self, name: str, role: str = USER) -> str:
        """What BTCPAY_DATABASE_URL says of one of its databases."""
        return f"postgresql://{role}:any@127.0.0.1:{self.port}/{name}"

    def create(self, template: str = TEMPLATE) -> str:
        """The URL of a new database, a copy of this one, which nobody may be connected to."""
        self._forget(template)
        name = f"test{next(_numbers)}"
        self._tell(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        self.made.add(self.url(name))
        return self.url(name)

    def drop(self, url: str) -> None:
        """Removes a database, whoever is connected to it."""
        name = url.rpartition("/")[2]
        self._forget(name)
        self._tell(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self.made.discard(url)

    def lend(self) -> str:
        """The URL of a copy of TEMPLATE that is as new, for `take_back`."""
        if len(self._lent) == AT_ONCE:
            return self.create()
        if not self._idle:
            url = self.create()
            self.made.discard(url)
            self._idle.append(Lent(url.rpartition("/")[2], url))
        lent = self._idle.pop()
        lent.let_in()
        self._lent[lent.name] = lent
        url = self.url(lent.name, lent.role)
        self.made.add(url)
        return url

    def take_back(self, url: str) -> None:
        """Keeps a database that was lent and can be lent again, drops any other."""
        lent = self._lent.get(url.rpartition("/")[2])
        if lent and lent.is_as_new():
            self._idle.append(self._lent.pop(lent.name))
            self.made.discard(url)
        else:
            self.drop(url)

    def drop_idle(self) -> None:
        """Drops what waits to be lent again."""
        while self._idle:
            lent = self._idle.pop()
            lent.keeper.close()
            self.drop(self.url(lent.name))

    def _forget(self, name: str) -> None:
        """A database that is about to be dropped or copied is not lent again."""
        if lent := self._lent.pop(name, None):
            lent.keeper.close()

    def _tell(self, statement: str) -> None:
        """On a connection that stays: a new one would take as long as dropping a database."""
        if self._admin is None or self._admin.closed:
            self._admin = psycopg.connect(self.url("postgres"), autocommit=True)
        self._admin.execute(statement)

    def start(self) -> None:
        self._run("pg_ctl", "--log", str(self._folder / "log"), "--silent", "--wait", "start")

    def stop(self, mode: str = "fast") -> None:
        """`fast` tells every client, `immediate` is what a crash would be."""
        self.drop_idle()
        if self._admin:
            self._admin.close()
        self._run("pg_ctl", "--mode", mode, "--silent", "--wait", "stop")

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def _run(self, program: str, *words: str) -> None:
        command = [str(PROGRAMS / program), *words, "--pgdata", str(self._folder / "data")]
        done = subprocess.run(
            command,
            user=self._user,
            cwd=self._folder,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the server keeps it open: a pipe would never end
            stderr=subprocess.DEVNULL,
            timeout=120,
        )
        log = self._folder / "log"
        told = log.read_text() if log.exists() else ""
        assert done.returncode == 0, f"{program} ended with {done.returncode}: {told}"


def in_memory() -> str | None:
    """A folder in memory, where a new database takes half as long; not the 64 MB of a container."""
    place = Path("/dev/shm")
    roomy = place.is_dir() and shutil.disk_usage(place).free > 2**31
    return str(place) if roomy and os.access(place, os.W_OK) else None


@cache
def server() -> Server:
    """The server of this run of the tests, started at its first use.

    Where there is none the test is skipped, or fails when the run is about PostgreSQL.
    """
    if not (PROGRAMS / "initdb").exists():
        give_up = pytest.fail if os.environ.get("TESTS_ON") == "postgresql" else pytest.skip
        give_up("PostgreSQL's programs are not installed (apt-get install postgresql)")
    started = Server()
    with psycopg.connect(started.url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    migrate.migrate(started.url(TEMPLATE), "regtest")
    with psycopg.connect(started.url(TEMPLATE)) as connection:
        connection.execute("DELETE FROM meta")  # each test says which network it is of
    return started
