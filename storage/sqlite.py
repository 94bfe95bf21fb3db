"""SQLite where a disk is full: what failed first is what is told."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from peewee import OperationalError, SqliteDatabase


class Sqlite(SqliteDatabase):
    """peewee's, but for what happens when a transaction cannot be written."""

    def rollback(self) -> None:
        """Does nothing where SQLite has undone the transaction itself, as when the disk is full."""
        if self.connection().in_transaction:
            super().rollback()

    @contextmanager
    def atomic(self, *args: Any, **kwargs: Any) -> Iterator[None]:  # type: ignore[override]
        """A transaction or a savepoint. Raises what failed, not that it was undone already."""
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
