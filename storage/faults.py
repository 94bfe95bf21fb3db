"""Distinguishes failures of the database's environment from bugs of this program.

The environment is the disk, the server, or a lock that another process holds. Other
packages import peewee's errors from here: the package `storage` must import peewee first.
"""

import sqlite3

import peewee
from peewee import DatabaseError as DatabaseError
from peewee import IntegrityError as IntegrityError
from peewee import InterfaceError
from peewee import OperationalError as OperationalError
from peewee import PeeweeException as PeeweeException

# Turns a driver's errors into peewee's, also errors while rows are fetched.
as_peewee_errors = peewee.__exception_wrapper__  # type: ignore[attr-defined]

_SQLITE_CODES = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOTADB,
}
# SQLSTATE classes: connection (08), resources such as a full disk (53), operator intervention (57),
# system error (58). States: read-only standby (25006), lock timeout (55P03).
_CLASSES = ("08", "53", "57", "58")
_STATES = {"25006", "55P03"}


def is_outside(error: Exception) -> bool:
    """True if the environment caused the database error, not a bug of this program.

    Callers then log no traceback, because it would not help.
    """
    if not isinstance(error, PeeweeException):
        return False
    original = getattr(error, "orig", None)
    if isinstance(original, sqlite3.Error):
        return _sqlite_code(original) in _SQLITE_CODES
    state = getattr(original, "sqlstate", None)
    if state:
        return state in _STATES or state.startswith(_CLASSES)
    # without a SQLSTATE the server could not be reached
    return isinstance(error, OperationalError | InterfaceError)


def is_locked(error: BaseException | None) -> bool:
    """True if SQLite gave up waiting for a lock of another process (SQLITE_BUSY)."""
    original = getattr(error, "orig", None)
    return _sqlite_code(original) == sqlite3.SQLITE_BUSY


def _sqlite_code(error: object) -> int:
    """Returns SQLite's primary result code of an error: the low byte of its code."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF
