"""A process that dies at a chosen moment: by SIGKILL, just before one of its commits."""

import itertools
import os
import signal
import subprocess
import sys
from typing import Any, cast

import peewee
import psycopg

from tests.support.paths import PROJECT

WRITING = ("INSERT", "UPDATE", "DELETE")
DYING = """
import sys
from tests.support.dying import die_before
die_before(int(sys.argv.pop(1)))
from btcpay.cli.main import main
main()
"""


def run_until_death(moment: int, *words: str, **environ: str) -> None:
    """The command line in a process of its own, which must die at that moment."""
    environ |= {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT)}
    died = subprocess.run(
        [sys.executable, "-c", DYING, str(moment), *words], env=environ
    )
    assert died.returncode == -signal.SIGKILL


def die_before(moment: int | None) -> None:
    """Kills this process before its so manieth commit, on whichever connection.

    A statement that writes outside a transaction is one. A death before any other leaves what one
    before the next of these leaves.
    """
    moments = itertools.count(1)

    def die(sql: str) -> None:
        if next(moments) == moment:
            os.write(2, f"killed before {sql}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)

    class Trace:
        """The statements sent to one connection."""

        def __init__(self) -> None:
            self._is_in_transaction = False

        def __call__(self, sql: str) -> None:
            word = sql.split(maxsplit=1)[0].rstrip(";")
            if word == "COMMIT" or (word in WRITING and not self._is_in_transaction):
                die(sql)
            if word in ("BEGIN", "COMMIT", "ROLLBACK"):
                self._is_in_transaction = word == "BEGIN"

    def connect(*args: Any, **kwargs: Any) -> Any:
        connection = opened(*args, **kwargs)
        connection.set_trace_callback(Trace())
        return connection

    class Cursor(psycopg.Cursor):
        def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
            cast(Connection, self.connection).trace(query)
            return super().execute(query, *args, **kwargs)

    class Connection(psycopg.Connection):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.trace = Trace()
            self.cursor_factory = Cursor

    # As peewee has imported it, which its types do not show.
    sqlite: Any = peewee.sqlite3  # type: ignore[attr-defined]
    opened = sqlite.connect
    sqlite.connect = connect
    server: Any = psycopg
    server.connect = Connection.connect
