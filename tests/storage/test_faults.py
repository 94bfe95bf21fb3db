"""Failures of a database that come from its surroundings, told by the drivers' words."""

import sqlite3

import psycopg
import pytest
from peewee import IntegrityError, InternalError, OperationalError, ProgrammingError

from storage.faults import is_outside

pytestmark = pytest.mark.both_databases


def of_sqlite(code):
    error = sqlite3.OperationalError("as it says")
    error.sqlite_errorcode = code
    return OperationalError(error, "as it says")


OUTSIDE = {
    "a full disk": of_sqlite(sqlite3.SQLITE_FULL),
    "a disk that fails": of_sqlite(sqlite3.SQLITE_IOERR_WRITE),
    "a read-only file": of_sqlite(sqlite3.SQLITE_READONLY),
    "a lock held too long": of_sqlite(sqlite3.SQLITE_BUSY),
    "a server's full disk": OperationalError(psycopg.errors.DiskFull()),
    "a standby": InternalError(psycopg.errors.ReadOnlySqlTransaction()),
    "no server": OperationalError(psycopg.OperationalError("away")),
    "no connection": OperationalError("all connections are in use"),
    "its lock": OperationalError(psycopg.errors.LockNotAvailable()),
}
OURS = {
    "a table that is missing": of_sqlite(sqlite3.SQLITE_ERROR),
    "its missing table": ProgrammingError(psycopg.errors.UndefinedTable()),
    "a rule that is broken": IntegrityError(psycopg.errors.UniqueViolation()),
    "an error that is no database's": ValueError("full"),
}


@pytest.mark.parametrize("case", OUTSIDE | OURS)
def test_a_failure_is_of_the_surroundings_or_of_the_program(case):
    assert is_outside((OUTSIDE | OURS)[case]) is (case in OUTSIDE)
