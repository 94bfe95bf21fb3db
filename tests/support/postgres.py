"""A real PostgreSQL server of the tests' own, and a database of it for each test that wants one.

Debian's programs, in a temporary folder, as the user `postgres` where the tests are root's; it
listens on a free port of 127.0.0.1, and waits for the disk only if it shall be durable. A packaged
cluster that runs on the same machine is not touched.
"""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import psycopg
import pytest

from storage import versions
from tests.support.ports import free_port

PROGRAMS = max(
    Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/lib/postgresql")
)
# Nothing is kept for a crash: the data ends with the server.
FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
END = 'read _; "$0" --mode immediate --pgdata "$1/data" stop; rm -r "$1"'
USER = "blocktill"
SECRET = "correct-horse"
TEMPLATE = "migrated"  # the database that new ones are copied from
_numbers = itertools.count(1)


class Server:
    """Runs until the process that made it ends; `restart` ends every connection.

    One that `follows` another is its copy, and takes over once it is promoted. A
    `durable` one has PostgreSQL's own settings, and its data on the disk.
    """

    def __init__(self, follows: "Server | None" = None, durable: bool = False) -> None:
        self.made: set[str] = set()
        self._admin: psycopg.Connection | None = None
        self._user = pwd.getpwnam("postgres").pw_uid if os.getuid() == 0 else None
        settings = {"max_connections": "200"}
        if not durable:
            settings |= FAST
        place = None
        if not follows and not durable:  # both of a large one may not fit there
            place = in_memory()
        self._folder = Path(tempfile.mkdtemp(prefix="blocktill-postgres-", dir=place))
        if os.getuid() == 0:
            shutil.chown(self._folder, "postgres")
        self.port = free_port()
        if follows:
            address = [
                "--host=127.0.0.1",
                f"--port={follows.port}",
                f"--username={USER}",
            ]
            self._run(
                "pg_basebackup", *address, "--write-recovery-conf", "--checkpoint=fast"
            )
        else:
            self._run(
                "initdb",
                "--username",
                USER,
                "--auth=trust",
                "--encoding=UTF8",
                "--no-sync",
            )
        with (self._folder / "data/postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())
            file.write(
                f"unix_socket_directories = '{self._folder}'\nport = {self.port}\n"
            )
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

    def url(self, name: str) -> str:
        """The BLOCKTILL_DATABASE_URL of one of its databases."""
        return f"postgresql://{USER}:{SECRET}@127.0.0.1:{self.port}/{name}"

    @property
    def pid(self) -> int:
        """The pid of the server's main process, the parent of all others."""
        return int((self._folder / "data/postmaster.pid").read_text().split()[0])

    def create(self, template: str = TEMPLATE, name: str = "") -> str:
        """The URL of a new database, a copy of this one, which nobody may be connected to."""
        name = name or f"test{next(_numbers)}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        self.made.add(self.url(name))
        return self.url(name)

    def drop(self, url: str) -> None:
        """Removes a database, whoever is connected to it."""
        self._execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")
        self.made.discard(url)

    def _execute(self, statement: str) -> None:
        """On a connection that stays: a new one would take as long as dropping a database."""
        if self._admin is None or self._admin.closed:
            self._admin = psycopg.connect(self.url("postgres"), autocommit=True)
        self._admin.execute(statement)

    def start(self) -> None:
        self._run(
            "pg_ctl", "--log", str(self._folder / "log"), "--silent", "--wait", "start"
        )

    def stop(self, mode: str = "fast") -> None:
        """Stops it: `fast` tells every client, `immediate` is like a crash."""
        if self._admin:
            self._admin.close()
        self._run("pg_ctl", "--mode", mode, "--silent", "--wait", "stop")

    def promote(self) -> None:
        self._run("pg_ctl", "--silent", "--wait", "promote")

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def _run(self, program: str, *words: str) -> None:
        command = [
            str(PROGRAMS / program),
            *words,
            "--pgdata",
            str(self._folder / "data"),
        ]
        done = subprocess.run(
            command,
            user=self._user,
            cwd=self._folder,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the server keeps it open: a pipe would never end
            stderr=subprocess.DEVNULL,
            timeout=600,  # a copy of a large one takes minutes
        )
        log = self._folder / "log"
        logged = log.read_text() if log.exists() else ""
        assert done.returncode == 0, f"{program} ended with {done.returncode}: {logged}"


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
        give_up = (
            pytest.fail if os.environ.get("TESTS_ON") == "postgresql" else pytest.skip
        )
        give_up("PostgreSQL's programs are not installed (apt-get install postgresql)")
    started = Server()
    with psycopg.connect(started.url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    versions.migrate(started.url(TEMPLATE), "regtest")
    with psycopg.connect(started.url(TEMPLATE)) as connection:
        connection.execute("DELETE FROM meta")  # each test says which network it is of
    return started
