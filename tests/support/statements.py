"""The statements that run: as SQLite itself reports them, or as they are sent to a server."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.support.builders import Shop


@contextmanager
def statements(shop: Shop) -> Iterator[list[str]]:
    """The statements that this thread's connection runs meanwhile."""
    connection = shop.service.db.connection.connection()
    found: list[str] = []
    connection.set_trace_callback(found.append)
    yield found
    connection.set_trace_callback(None)


def sent(patch: pytest.MonkeyPatch) -> list[Any]:
    """The statements that this thread sends to a server from now on."""
    found: list[Any] = []
    ours = threading.get_ident()
    execute = psycopg.Cursor.execute

    def noted(cursor: Any, statement: Any, *args: Any, **named: Any) -> Any:
        if threading.get_ident() == ours:
            found.append(statement)
        return execute(cursor, statement, *args, **named)

    patch.setattr(psycopg.Cursor, "execute", noted)
    return found
