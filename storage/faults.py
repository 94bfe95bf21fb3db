"""Tells failures of the surroundings (a disk, a server, a lock) from faults of the program."""

import sqlite3

from peewee import (  # type: ignore[attr-defined]
    InterfaceError,
    OperationalError,
    PeeweeException,
    __exception_wrapper__,
)

# Turns a driver's errors into peewee's, also those of fetching, which reads the file.
as_peewee_errors = __exception_wrapper__

_OF_SQLITE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOTADB,
}
# SQLSTATE: connection, resources (a full disk), operator intervention, system; a standby, a lock.
_CLASSES = ("08", "53", "57", "58")
_STATES = {"25006", "55P03"}


def is_outside(error: Exception) -> bool:
    """True where a database error comes from its surroundings: then a traceback adds nothing."""
    if not isinstance(error, PeeweeException):
        return False
    original = getattr(error, "orig", None)
    if isinstance(original, sqlite3.Error):
        code = getattr(original, "sqlite_errorcode", 0)
        return code & 0xFF in _OF_SQLITE  # the upper bits refine it
    if state := getattr(original, "sqlstate", None):
        return state in _STATES or state.startswith(_CLASSES)
    # the server was not reached
    return isinstance(error, OperationalError | InterfaceError)


def is_locked(error: BaseException | None) -> bool:
    """True where another process keeps SQLite's lock for longer than a transaction waits for it."""
    original = getattr(error, "orig", None)
    return getattr(original, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
