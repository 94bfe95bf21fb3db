"""SQLite files: connections that report the first error, and creating a file."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peewee import OperationalError, SqliteDatabase

from btcpay.values.errors import DatabaseNotReady

OLDEST = (3, 37, 0)  # the first version with STRICT tables
# Maximum size of a row. The largest rows of this program have a transaction, which fits in a block
# of 4 MB. A backup that somebody has tampered with could have rows that fill the memory.
MAX_VALUE_BYTES = 2**26


class Sqlite(SqliteDatabase):
    """peewee's SqliteDatabase, with better error handling on a full or damaged disk."""

    # Queries use the operators with which PostgreSQL compares texts byte by byte (its indexes with
    # text_pattern_ops serve them). SQLite's usual operators do the same.
    operations = SqliteDatabase.operations | {"~>=~": ">=", "~<~": "<"}

    def run(self, sql: str, parameters: Sequence[Any]) -> sqlite3.Cursor:
        """Runs the statement, and returns its cursor."""
        cursor: sqlite3.Cursor = self.cursor()  # type: ignore[no-untyped-call]
        return cursor.execute(sql, parameters)

    def _connect(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = super()._connect()  # type: ignore[misc]
        limit_values(connection)
        return connection

    def rollback(self) -> None:
        """Rolls back, unless SQLite has already done so itself, for example on a full disk."""
        if self.connection().in_transaction:  # type: ignore[no-untyped-call]
            super().rollback()

    @contextmanager
    def atomic(self, *args: Any, **kwargs: Any) -> Iterator[None]:  # type: ignore[override]
        """Runs the block in a transaction or a savepoint.

        If the rollback fails too, raises the first error, not the rollback's.
        """
        first_error: OperationalError | None = None
        try:
            with super().atomic(*args, **kwargs):
                try:
                    yield
                except OperationalError as error:
                    first_error = error
                    raise
        except OperationalError as error:
            # it is the first error again, or that of the rollback
            raise first_error or error from None


def limit_values(connection: sqlite3.Connection) -> None:
    """Makes the connection raise sqlite3.DataError for a row above MAX_VALUE_BYTES."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)


def refuse_old_library() -> None:
    """Raises DatabaseNotReady if Python's SQLite is older than 3.37 (STRICT tables)."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise DatabaseNotReady(
            f"this Python has SQLite {sqlite3.sqlite_version}: 3.37 or newer is needed"
        )


def create_file(path: Path) -> None:
    """Creates an empty file that only its owner can read, and its folder, unless they exist."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    os.close(descriptor)
