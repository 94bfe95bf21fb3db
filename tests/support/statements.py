"""The statements that run, as SQLite itself reports them."""

from collections.abc import Iterator
from contextlib import contextmanager

from builders import Shop


@contextmanager
def statements(shop: Shop) -> Iterator[list[str]]:
    """The statements that this thread's connection runs meanwhile."""
    connection = shop.service.db.connection.connection()
    found: list[str] = []
    connection.set_trace_callback(found.append)
    yield found
    connection.set_trace_callback(None)
