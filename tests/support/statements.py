"""The statements that run: as SQLite itself reports them, or as they are sent to a server."""

import tempfile
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


@contextmanager
def round_trips(shop: Shop) -> Iterator[list[str]]:
    """What this shop's only connection to the server waits for meanwhile, one line for each."""
    ((_, _, connection),) = shop.service.db.connection._connections
    found: list[str] = []
    with tempfile.TemporaryFile("w+") as log:
        connection.pgconn.trace(log.fileno())
        yield found
        connection.pgconn.untrace()
        log.seek(0)
        # PQtrace's lines: time, F for what the client sends, length, message
        found += [line for line in log if line.split("\t")[1:2] == ["F"]]
    found[:] = [line for line in found if line.split("\t")[3].strip() == "Sync"]
