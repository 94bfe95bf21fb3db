"""The connection to the database, SQLite or PostgreSQL, which runs all queries."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, Unpack
from urllib.parse import quote, urlsplit

from peewee import PeeweeException, Query, Select, SqliteDatabase, fn

from btcpay.values.errors import CommandError
from storage.faults import as_peewee_errors
from storage.postgres import open_pool
from storage.sqlite import Sqlite, refuse_old_library
from storage.statement import Statement, Typed
from storage.values import Values as Values
from storage.write_queue import Places, WriteQueue

# WAL: readers are not blocked by the one writer. synchronous=FULL: if a power cut lost a commit
# after its response was sent, an address could be given out twice. secure_delete: deleted data is
# overwritten, so that no customer's address stays in the file. cache_size: 512 kB instead of 2 MB,
# because there are 64 threads and the operating system caches pages too. LOCK_WAIT_S is 10 s
# because a check may hold the lock. page_size: half of the usual 4096 bytes, because a commit
# writes each page that it changes as a whole. It counts only for a new file.
SQLITE_PRAGMAS = {
    "page_size": 2048,
    "journal_mode": "wal",
    "synchronous": "full",
    "foreign_keys": 1,
    "secure_delete": 1,
    "cache_size": -512,
}
LOCK_WAIT_S = 10
# how long `write_if_free` waits for other processes; a commit takes less
SHORT_WAIT_MS = 100
_NULL_CONTEXT = nullcontext()

Row = dict[str, Any]
T = TypeVar("T")
K = TypeVar("K")


# Compiled statements by the query's id, for the whole process: one table for SQLite (False) and one
# for PostgreSQL (True).
_STATEMENTS: dict[bool, dict[tuple[type[Statement], int], Statement]] = {
    False: {},
    True: {},
}
_COMPILING = threading.Lock()


class _Packed(NamedTuple):
    """What `json_rows` runs in place of a query: each row is packed into one text."""

    columns: tuple[str, ...]
    query: Select


class Database:
    """The database, with methods that run queries.

    A query is a constant of a module, built from the models. It has a `param(name)` for
    each value, and is compiled at its first use. With SQLite each thread keeps its own
    connection. With PostgreSQL a connection is borrowed from a pool for each statement
    or transaction.

    `is_doubtful` is set to True when a transaction fails. The readiness check resets
    it, and then tries to write.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.is_server = not isinstance(connection, SqliteDatabase)
        self.is_doubtful = False
        self._statements = _STATEMENTS[self.is_server]
        # For `json_rows`, by the id() of the query.
        self._packed_queries: dict[int, _Packed] = {}
        # PostgreSQL: limits how many threads wait for a connection.
        self._places = Places()
        # SQLite: the threads of this process write one after another.
        self._write_queue = WriteQueue()

    def rows(self, query: Typed[T], **values: Unpack[Values]) -> list[T]:
        """Returns the rows of a SELECT or of a RETURNING clause, as named tuples.

        `Typed` explains which type mypy sees for a row.
        """
        with self.borrow_connection(), as_peewee_errors:
            statement, cursor = self.execute(query, values)
            return statement.rows_of(cursor)

    def json_rows(
        self,
        query: Select,
        **values: Unpack[Values],
    ) -> tuple[tuple[str, ...], list[str]]:
        """Returns the names of the columns, and each row as the text of a JSON array.

        This is faster than `rows`. The sqlite3 module releases the GIL at each value,
        and here each row is a single value.
        """
        packed = self._packed_queries.get(id(query)) or self._pack(query)
        with self.borrow_connection(), as_peewee_errors:
            _, cursor = self.execute(packed.query, values)
            texts = [text for (text,) in cursor.fetchall()]
        return packed.columns, texts

    def get_or_none(self, query: Typed[T], **values: Unpack[Values]) -> T | None:
        """Returns the first row of a SELECT or of a RETURNING clause; None if there is none."""
        # all rows are fetched: SQLite finishes an UPDATE ... RETURNING only then
        rows = self.rows(query, **values)
        if rows:
            return rows[0]
        return None

    def get(self, query: Typed[T], **values: Unpack[Values]) -> T:
        """Returns the first row of the query. Raises LookupError if there is no row."""
        row = self.get_or_none(query, **values)
        if row is None:
            raise LookupError(f"no row for {sorted(values)}")
        return row

    def get_or_fail(self, query: Typed[T], name: str, /, **values: Unpack[Values]) -> T:
        """Returns the first row of the query.

        Raises CommandError if there is no row. The message is "there is no", followed
        by `name`.
        """
        row = self.get_or_none(query, **values)
        if row is None:
            raise CommandError(f"there is no {name}")
        return row

    def run(self, query: Query, **values: Unpack[Values]) -> int:
        """Runs the statement, and returns the number of rows changed."""
        with self.borrow_connection(), as_peewee_errors:
            _, cursor = self.execute(query, values)
            return int(cursor.rowcount)

    def queue(self, query: Query, **values: Unpack[Values]) -> None:
        """Runs a statement whose result is not needed.

        In a transaction of PostgreSQL, the statement is sent together with the next
        one, or with COMMIT, in one network round trip. If it fails, the next statement
        or the COMMIT raises the error. Outside of a transaction, and on SQLite, the
        statement is run at once.
        """
        if not self._may_queue():
            self.run(query, **values)
            return
        with as_peewee_errors:
            statement = self._compiled(query)
            self.connection.queue(statement.sql, statement.arguments(values))

    def rows_of_both(
        self,
        first: Typed[T],
        second: Typed[K],
        /,
        **values: Unpack[Values],
    ) -> tuple[list[T], list[K]]:
        """Returns the rows of two queries, which are run in this order.

        Both get the same values. In a transaction of PostgreSQL both are sent in one
        network round trip.
        """
        if not self._may_queue():
            return self.rows(first, **values), self.rows(second, **values)
        with as_peewee_errors:
            statement = self._compiled(first)
            cursor = self.connection.queue(statement.sql, statement.arguments(values))
        rows = self.rows(second, **values)
        with as_peewee_errors:
            return statement.rows_of(cursor), rows

    def _may_queue(self) -> bool:
        """True in a transaction of PostgreSQL."""
        return self.is_server and bool(self.connection.in_transaction())

    @contextmanager
    def write(self) -> Iterator[None]:
        """Runs the block in a transaction, or in a savepoint of the open transaction.

        On SQLite the transaction takes the write lock at its start (BEGIN IMMEDIATE).
        On PostgreSQL it is READ COMMITTED: a query that reads a row in order to change
        it must lock the row with `for_update()`.
        """
        access: AbstractContextManager[None] = self._write_queue
        if self.is_server:
            access = self.borrow_connection()
        try:
            with access, self.connection.atomic():
                yield
        except PeeweeException:
            self.is_doubtful = True
            raise

    @contextmanager
    def write_if_free(self) -> Iterator[None]:
        """Runs the block in a transaction, unless the database is busy.

        Use it for data that may be lost. It waits at most SHORT_WAIT_MS for each lock,
        then raises TooManyWait or another OperationalError. This failure does not make
        the threads fail that wait in `write`. On SQLite a power cut may lose the commit
        (see `unforced`). Do not call it in a transaction.
        """
        if self.is_server:
            with self._borrow(self._places.if_free()), self.connection.atomic():
                self.connection.queue(f"SET LOCAL lock_timeout = {SHORT_WAIT_MS}")
                yield
            return
        with self._write_queue.if_free(), self.unforced():
            self.connection.execute_sql(f"PRAGMA busy_timeout = {SHORT_WAIT_MS}")
            try:
                with self.connection.atomic():
                    yield
            finally:
                self.connection.execute_sql(
                    f"PRAGMA busy_timeout = {LOCK_WAIT_S * 1000}"
                )

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Runs the block in a transaction in which all queries see the same state.

        The transaction blocks no writer.
        """
        kind = "DEFERRED"
        if self.is_server:
            kind = "REPEATABLE READ"
        with self.borrow_connection(), self.connection.atomic(kind):
            yield

    @contextmanager
    def unforced(self) -> Iterator[None]:
        """On SQLite, lets commits in the block return without waiting for the disk.

        No fsync follows these commits. A power cut may lose them; the death of the
        process does not. The next commit outside of such a block forces them to disk.
        Do not call it in a transaction. It does nothing on PostgreSQL.
        """
        if self.is_server:
            yield
            return
        self.connection.execute_sql("PRAGMA synchronous = normal")
        try:
            yield
        finally:
            self.connection.execute_sql("PRAGMA synchronous = full")

    def batch(self) -> AbstractContextManager[None]:
        """On SQLite, makes all `write` blocks inside this block one transaction.

        On PostgreSQL it does nothing, and each `write` commits separately: two
        transactions that lock many rows could deadlock.
        """
        if self.is_server:
            return _NULL_CONTEXT
        return self.write()

    def borrow_connection(self) -> AbstractContextManager[None]:
        """On PostgreSQL, borrows a connection for this thread until the block ends.

        It does nothing on SQLite, or if the thread has a connection already.
        """
        if self.is_server and self.connection.is_closed():
            return self._borrow(self._places)
        return _NULL_CONTEXT

    @property
    def has_lost_connection(self) -> bool:
        """True if PostgreSQL has ended the session of this thread's connection."""
        if not self.is_server or self.connection.is_closed():
            return False
        return bool(self.connection.connection().closed)

    @contextmanager
    def _borrow(self, place: AbstractContextManager[None]) -> Iterator[None]:
        """Borrows a connection for this thread, once `place` lets the thread in."""
        with place:
            self.connection.connect()
            try:
                yield
            finally:
                self.connection.close()

    def close(self) -> None:
        """Closes this thread's connection, and the PostgreSQL pool's idle ones."""
        self.connection.close()
        if self.is_server:
            self.connection.close_idle()

    def execute(
        self,
        query: Any,
        values: Any,
        kind: type[Statement] = Statement,
    ) -> tuple[Statement, Any]:
        """Runs the query, and returns its compiled statement and the cursor.

        `kind` is the class that compiles the query. peewee's own `execute` is not used,
        because it takes time for logging.
        """
        statement = self._compiled(query, kind)
        cursor = self.connection.run(statement.sql, statement.arguments(values))
        return statement, cursor

    def _compiled(self, query: Any, kind: type[Statement] = Statement) -> Statement:
        """Returns the query's compiled statement, which is made at its first use."""
        key = (kind, id(query))
        statement = self._statements.get(key)
        if statement is None:
            with _COMPILING:
                new_statement = kind(self.connection, query)
                statement = self._statements.setdefault(key, new_statement)
        return statement

    def _pack(self, query: Select) -> _Packed:
        """Returns the query that `json_rows` runs, and stores it for the next call.

        It packs each row into the text of one JSON array.
        """
        fields = query.selected_columns
        to_array = fn.json_array
        if self.is_server:
            to_array = fn.json_build_array
        packed_query = query.select(to_array(*fields).cast("TEXT"))
        names = tuple(field.name for field in fields)
        packed = _Packed(names, packed_query)
        return self._packed_queries.setdefault(id(query), packed)


def sqlite_path(url: str) -> Path | None:
    """Returns the path in a `sqlite:///` URL; None for another database."""
    if url.startswith("sqlite:///"):
        return Path(url.removeprefix("sqlite:///"))
    return None


def place_of(url: str) -> str:
    """Returns a text that names the database at a BLOCKTILL_DATABASE_URL, without its password.

    It is the path of the SQLite file, or "NAME on HOST" for PostgreSQL.
    """
    path = sqlite_path(url)
    if path:
        return str(path.absolute())
    parts = urlsplit(url)
    name = parts.path.removeprefix("/")
    return f"{name} on {parts.hostname}"


def open_database(url: str) -> Database:
    """Returns the database at a BLOCKTILL_DATABASE_URL. The first query connects to it.

    A missing SQLite file is never created. Raises DatabaseNotReady if the PostgreSQL
    driver is missing, or if Python's SQLite is too old.
    """
    path = sqlite_path(url)
    if path:
        refuse_old_library()
        file = f"file://{quote(str(path.absolute()))}?mode=rw"  # rw: a missing file is not created
        options: dict[str, Any] = {
            "timeout": LOCK_WAIT_S,
            "lock_type": "IMMEDIATE",
            "uri": True,
        }
        return Database(Sqlite(file, pragmas=SQLITE_PRAGMAS, **options))
    return Database(open_pool(url))


def group_by(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Returns a dictionary with the rows of each key, in their order.

    `key` returns the key of a row. A key without rows gives an empty list.
    """
    groups: dict[K, list[T]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def in_one_line(error: Exception) -> str:
    """Returns the message of a database error as one line.

    PostgreSQL's messages have several lines.
    """
    return " ".join(str(error).split())
