"""One database, SQLite or PostgreSQL."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar, Unpack
from urllib.parse import quote, urlsplit

from peewee import PeeweeException, Query, Select, SqliteDatabase, fn

from btcpay.values.errors import CommandError
from storage.faults import as_peewee_errors
from storage.postgres import open_pool
from storage.sqlite import Sqlite, refuse_old_library
from storage.statement import Statement, Typed
from storage.values import Values as Values
from storage.write_queue import Places, WriteQueue

# WAL: readers go on beside the one writer. FULL: a commit that is lost after its answer went out
# would hand out an address twice. 10 s: a check may hold the lock.
# secure_delete: what is erased is overwritten, so the file keeps no customer's address either.
# cache_size: 512 kB for each of 64 threads, not 2 MB; the system's own cache has the pages too.
SQLITE_PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": "full",
    "foreign_keys": 1,
    "secure_delete": 1,
    "cache_size": -512,
}
LOCK_WAIT_S = 10
_AS_IT_IS = nullcontext()

Row = dict[str, Any]
T = TypeVar("T")
K = TypeVar("K")


# Compiled once in each process, by the query's id; one table for SQLite, one for servers.
_STATEMENTS: dict[bool, dict[tuple[type[Statement], int], Statement]] = {
    False: {},
    True: {},
}
_COMPILING = threading.Lock()


class Database:
    """The database that queries run on. `rows`, `row` and `run` compile a query at its first use.

    A query is a module's constant, built from the models with `slot(name)` for its values. With
    SQLite each thread keeps its connection; a server's is lent for a statement or a transaction.
    `is_doubtful` is true after a transaction has failed, until somebody tries to write again.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.is_server = not isinstance(connection, SqliteDatabase)
        self.is_doubtful = False
        self._statements = _STATEMENTS[self.is_server]
        self._packed: dict[int, tuple[tuple[str, ...], Select]] = {}
        self._places = Places()
        self._write_queue = WriteQueue()

    def rows(self, query: Typed[T], **values: Unpack[Values]) -> list[T]:
        """The rows of a SELECT or a RETURNING; `Typed` explains their type."""
        with self.connected(), as_peewee_errors:
            statement, cursor = self.execute(query, values)
            return statement.made(cursor)

    def packed(
        self, query: Select, **values: Unpack[Values]
    ) -> tuple[tuple[str, ...], list[str]]:
        """The names of the columns, and each row as the text of a JSON array.

        Faster than `rows`: the sqlite3 module gives up the interpreter's lock at each value.
        """
        columns, packed = self._packed.get(id(query)) or self._pack(query)
        with self.connected(), as_peewee_errors:
            return columns, [
                text for (text,) in self.execute(packed, values)[1].fetchall()
            ]

    def row(self, query: Typed[T], **values: Unpack[Values]) -> T | None:
        # all: only then is an UPDATE ... RETURNING done
        rows = self.rows(query, **values)
        if rows:
            return rows[0]
        return None

    def only(self, query: Typed[T], **values: Unpack[Values]) -> T:
        """The row that must be there. Raises LookupError when it is not."""
        row = self.row(query, **values)
        if row is None:
            raise LookupError(f"no row for {sorted(values)}")
        return row

    def named(self, query: Typed[T], name: str, /, **values: Unpack[Values]) -> T:
        """The row of a name that a person gave. Raises CommandError when there is none."""
        row = self.row(query, **values)
        if row is None:
            raise CommandError(f"there is no {name}")
        return row

    def run(self, query: Query, **values: Unpack[Values]) -> int:
        """The number of rows that the statement changed."""
        with self.connected(), as_peewee_errors:
            return int(self.execute(query, values)[1].rowcount)

    @contextmanager
    def write(self) -> Iterator[None]:
        """One transaction.

        SQLite's holds the write lock from its start (BEGIN IMMEDIATE). A server's is READ
        COMMITTED: a row that is read to be changed needs a lock, `for_update()` in its query.
        """
        try:
            with (
                self.connected() if self.is_server else self._write_queue,
                self.connection.atomic(),
            ):
                yield
        except PeeweeException:
            self.is_doubtful = True
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads within see the database at one moment, and block no writer."""
        kind = "REPEATABLE READ" if self.is_server else "DEFERRED"
        with self.connected(), self.connection.atomic(kind):
            yield

    def batch(self) -> AbstractContextManager[None]:
        """One commit for every `write` within, on SQLite, where writers queue for the disk.

        A server commits each by itself: two transactions of many rows could wait for each other.
        """
        if self.is_server:
            return _AS_IT_IS
        return self.write()

    def connected(self) -> AbstractContextManager[None]:
        """Keeps one connection to a server for this thread, or goes on with the one it has."""
        if self.is_server and self.connection.is_closed():
            return self._lent()
        return _AS_IT_IS

    @contextmanager
    def _lent(self) -> Iterator[None]:
        with self._places:
            self.connection.connect()
            try:
                yield
            finally:
                self.connection.close()

    def close(self) -> None:
        """Closes this thread's connection, and those to a server that nobody uses."""
        self.connection.close()
        if self.is_server:
            self.connection.close_idle()

    def execute(
        self, query: Any, given: Any, kind: type[Statement] = Statement
    ) -> tuple[Statement, Any]:
        """The statement and its cursor, without peewee's own execute, which logs and counts."""
        key = (kind, id(query))
        if (statement := self._statements.get(key)) is None:
            with _COMPILING:
                statement = self._statements.setdefault(
                    key, kind(self.connection, query)
                )
        cursor = self.connection.cursor()
        cursor.execute(statement.sql, statement.arguments(given))
        return statement, cursor

    def _pack(self, query: Select) -> tuple[tuple[str, ...], Select]:
        fields = query.selected_columns
        array = fn.json_build_array if self.is_server else fn.json_array
        packed = query.select(array(*fields).cast("TEXT"))
        return self._packed.setdefault(
            id(query), (tuple(each.name for each in fields), packed)
        )


def sqlite_path(url: str) -> Path | None:
    """The file of a `sqlite:///` URL; None for another database."""
    if url.startswith("sqlite:///"):
        return Path(url.removeprefix("sqlite:///"))
    return None


def place_of(url: str) -> str:
    """A BLOCKTILL_DATABASE_URL as people may see it: without user and password."""
    path = sqlite_path(url)
    parts = urlsplit(url)
    if path:
        return str(path.absolute())
    return f"{parts.path[1:]} on {parts.hostname}"


def open_database(url: str) -> Database:
    """The database of a BLOCKTILL_DATABASE_URL; connects at the first query, and makes no file.

    Raises DatabaseNotReady when a driver is missing, or Python's SQLite is too old.
    """
    path = sqlite_path(url)
    if path:
        refuse_old_library()
        file = f"file://{quote(str(path.absolute()))}?mode=rw"  # rw: a lost file is not made anew
        how: dict[str, Any] = {
            "timeout": LOCK_WAIT_S,
            "lock_type": "IMMEDIATE",
            "uri": True,
        }
        return Database(Sqlite(file, pragmas=SQLITE_PRAGMAS, **how))
    return Database(open_pool(url))


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The rows by their keys, in their order; an empty list for any other key."""
    found: dict[K, list[T]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def in_one_line(error: Exception) -> str:
    """A database's own words in one line; a server sends several."""
    return " ".join(str(error).split())
