"""SQLite's file; on a full or damaged disk the first failure is reported, as peewee's error."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peewee import OperationalError, SqliteDatabase

from btcpay.values.errors import DatabaseNotReady

OLDEST = (3, 37, 0)  # the first that has STRICT tables


class Sqlite(SqliteDatabase):
    """peewee's database, except for what happens when the file cannot be read or written."""

    # A server's comparison of texts byte by byte, which its text_pattern_ops indexes serve.
    operations = SqliteDatabase.operations | {"~>=~": ">=", "~<~": "<"}

    def rollback(self) -> None:
        """Does nothing when SQLite has undone the transaction itself, as on a full disk."""
        if self.connection().in_transaction:  # type: ignore[no-untyped-call]
            super().rollback()

    @contextmanager
    def atomic(self, *args: Any, **kwargs: Any) -> Iterator[None]:  # type: ignore[override]
        """A transaction or a savepoint. Raises the first failure, not that of the rollback."""
        failed: OperationalError | None = None
        try:
            with super().atomic(*args, **kwargs):
                try:
                    yield
                except OperationalError as error:
                    failed = error
                    raise
        except OperationalError as error:
            raise failed or error from None


def refuse_old_library() -> None:
    """Raises DatabaseNotReady when Python's SQLite is too old to read the schema."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise DatabaseNotReady(
            f"this Python has SQLite {sqlite3.sqlite_version}: 3.37 or newer is needed"
        )


def create_file(path: Path) -> None:
    """Makes an empty SQLite file that only its owner can read, and its folder."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
