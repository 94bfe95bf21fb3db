"""The databases of this run of the tests: SQLite files, or with TESTS_ON=postgresql a server's."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import psycopg
import pytest
from peewee import Query
from psycopg.rows import dict_row

from btcpay import hooks
from storage import queries, versions
from storage.database import Database
from storage.statement import Slot, Statement
from tests.support import postgres

ON_POSTGRES = os.environ.get("TESTS_ON", "sqlite") == "postgresql"
# Files, journals and pragmas; what starts on a new file without being told to migrate.
about_sqlite = pytest.mark.skipif(ON_POSTGRES, reason="is about SQLite itself")


def new_database(folder: Path, name: str = "blocktill") -> str:
    """The URL of a new database that has its tables already: a file in this folder, or a server's.

    Migrations take longer than most tests.
    """
    if ON_POSTGRES:
        return postgres.server().create()
    path = folder / f"{name}.db"
    path.write_bytes(_migrated())
    path.chmod(0o600)
    return f"sqlite:///{path}"


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/migrated.db"
        versions.migrate(url, "regtest")
        with raw(url) as connection:
            # each test says which network it is of
            connection.execute("DELETE FROM meta")
        return Path(f"{folder}/migrated.db").read_bytes()


def empty_database(folder: Path) -> str:
    """The URL of a database without tables; a file whose folder is missing too."""
    if ON_POSTGRES:
        return postgres.server().create("template1")
    return f"sqlite:///{folder}/new/blocktill.db"


def copy_of(url: str, to: Path) -> str:
    """The URL of a copy, a file of this path; nobody may be connected to the server's original."""
    if ON_POSTGRES:
        return postgres.server().create(url.rpartition("/")[2])
    with raw(url) as source, raw(f"sqlite:///{to}") as copy:
        # a copy of the file alone would miss what is in the journal
        source.backup(copy)
    return f"sqlite:///{to}"


def remove(url: str) -> None:
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()
    else:
        postgres.server().drop(url)


def waits_for_lock(url: str) -> bool:
    """True if a transaction waits for another one; on SQLite always, which has one writer."""
    if not ON_POSTGRES:
        return True
    with raw(url) as connection:
        waiting = connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
        return waiting.fetchone() is not None


@contextmanager
def raw(url: str) -> Iterator[Any]:
    """A connection past peewee, whose rows are found by column; commits at the end."""
    if url.startswith("sqlite"):
        connection: Any = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.row_factory = sqlite3.Row
    else:
        connection = psycopg.connect(url, row_factory=dict_row)
    try:
        with connection:
            yield connection
    finally:
        connection.close()


def plan(db: Database, query: Query, value: Any = 1) -> str:
    """How the database would run a query, `value` in every slot; a server's may not read a table.

    It would otherwise, whatever the index: the tables of tests are small.
    """
    statement = Statement(db.connection, query)
    values = [
        value if isinstance(given, Slot) else given for given in statement.parameters
    ]
    with db.write():
        if db.is_server:
            db.connection.execute_sql("SET LOCAL enable_seqscan = off")
        explain = "EXPLAIN" if db.is_server else "EXPLAIN QUERY PLAN"
        rows = db.connection.execute_sql(
            f"{explain} {statement.sql}", values
        ).fetchall()
    return "\n".join(row[-1] for row in rows)


def tables(connection: Any) -> dict[str, list[dict[str, Any]]]:
    listing = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        if isinstance(connection, sqlite3.Connection)
        else "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"
    )
    names = [row["name"] for row in connection.execute(listing).fetchall()]
    return {
        name: [dict(row) for row in connection.execute(f"SELECT * FROM {name}")]  # noqa: S608
        for name in names
    }


def _found(name: str, value: Any) -> Iterator[tuple[str, Query]]:
    """The queries of a module's constant, which may be a table or a row of queries."""
    if isinstance(value, Query):
        yield name, value
    elif isinstance(value, tuple | list | dict):
        inner = value if isinstance(value, dict) else dict(enumerate(value))
        for place, one in inner.items():
            yield from _found(f"{name} {place}", one)


_OF_PARTS = [
    import_module(f"btcpay.parts.{file.parent.name}.{file.stem}")
    for file in sorted(hooks.PARTS_FOLDER.glob("*/*queries.py"))
]
_NAMES = (one.name for one in walk_packages(queries.__path__, "storage.queries."))
# Every query by its name, such as `invoices.BY_ID`.
QUERIES = {
    key: query
    for module in [*map(import_module, _NAMES), *_OF_PARTS]
    for name, value in vars(module).items()
    for key, query in _found(
        f"{module.__name__.removesuffix('.queries').rpartition('.')[2]}.{name}", value
    )
}
