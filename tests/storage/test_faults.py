"""Which failures of a database are its surroundings', by what the drivers say."""

import sqlite3

import psycopg
import pytest
from peewee import IntegrityError, InternalError, OperationalError, ProgrammingError

from storage.faults import is_outside

pytestmark = pytest.mark.both_databases


def of_sqlite(code: int) -> OperationalError:
    error = sqlite3.OperationalError("as it says")
    error.sqlite_errorcode = code
    return OperationalError(error, "as it says")


@pytest.mark.parametrize(
    ("error", "outside"),
    [
        pytest.param(of_sqlite(sqlite3.SQLITE_FULL), True, id="a full disk"),
        pytest.param(of_sqlite(sqlite3.SQLITE_IOERR_WRITE), True, id="a disk that fails"),
        pytest.param(of_sqlite(sqlite3.SQLITE_READONLY), True, id="a read-only file"),
        pytest.param(of_sqlite(sqlite3.SQLITE_BUSY), True, id="a lock held too long"),
        pytest.param(of_sqlite(sqlite3.SQLITE_ERROR), False, id="a table that is missing"),
        pytest.param(OperationalError(psycopg.errors.DiskFull()), True, id="a server's full disk"),
        pytest.param(InternalError(psycopg.errors.ReadOnlySqlTransaction()), True, id="a standby"),
        pytest.param(OperationalError(psycopg.OperationalError("away")), True, id="no server"),
        pytest.param(OperationalError("all connections are in use"), True, id="no connection"),
        pytest.param(OperationalError(psycopg.errors.LockNotAvailable()), True, id="its lock"),
        pytest.param(
            ProgrammingError(psycopg.errors.UndefinedTable()), False, id="its missing table"
        ),
        pytest.param(
            IntegrityError(psycopg.errors.UniqueViolation()), False, id="a rule that is broken"
        ),
        pytest.param(ValueError("full"), False, id="an error that is no database's"),
    ],
)
def test_a_failure_is_of_the_surroundings_or_of_the_program(
    error: Exception, outside: bool
) -> None:
    assert is_outside(error) is outside
