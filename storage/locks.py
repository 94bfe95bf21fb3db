"""Locks between processes: only one process at a time does a task with a database."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from btcpay.values.errors import DatabaseNotReady
from storage.database import Database, sqlite_path
from storage.heartbeat import end_silent_holder, heartbeat

# "btcp"; an arbitrary number that other programs are unlikely to use
_ADVISORY_LOCK = 0x62746370
_AGAIN_S = 0.1


@contextmanager
def only_one(db: Database, url: str, name: str, wait: bool = False) -> Iterator[bool]:
    """Yields True if this process holds the lock for the task `name`, else False.

    If `wait` is True, waits until the lock is free. `url` is the database's URL.

    The lock is a file lock (SQLite) or an advisory lock (PostgreSQL), so it is released
    when its process ends. On PostgreSQL a frozen process also loses the lock, and its
    transaction is rolled back. Raises DatabaseNotReady if the connection to PostgreSQL
    goes through a pooler.
    """
    path = sqlite_path(url)
    if path:
        with _file_lock(path, name, wait) as has_lock:
            yield has_lock
        return
    with _advisory_lock(db, name, wait) as has_lock:
        yield has_lock


@contextmanager
def _file_lock(path: Path, name: str, wait: bool) -> Iterator[bool]:
    """Does what `only_one` does, for the SQLite file at `path`."""
    flags = fcntl.LOCK_EX
    if not wait:
        flags |= fcntl.LOCK_NB
    with open(_lock_file(path, name), "w", encoding="ascii") as file:
        try:
            fcntl.flock(file, flags)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def _advisory_lock(db: Database, name: str, wait: bool) -> Iterator[bool]:
    """Does what `only_one` does, for PostgreSQL."""
    if db.connection.is_pooled:
        raise DatabaseNotReady(
            "a lock needs a connection to the server itself, not to a pooler"
        )
    number = _ADVISORY_LOCK + sum(name.encode())
    # The lock belongs to its connection, so this thread keeps the connection.
    with db.borrow_connection():
        has_lock = _take(db, number)
        while wait and not has_lock:
            time.sleep(_AGAIN_S)
            has_lock = _take(db, number)
        if not has_lock:
            yield False
            return
        try:
            with heartbeat(db.connection.connection()):
                yield True
        finally:
            _call(db, "pg_advisory_unlock", number)


def _take(db: Database, number: int) -> bool:
    """Takes the advisory lock if it is free, or if the process that holds it is frozen.

    Returns True if the lock was taken.
    """
    if _call(db, "pg_try_advisory_lock", number):
        return True
    if not end_silent_holder(db, number):
        return False
    time.sleep(_AGAIN_S)  # the session ends soon after it was told to
    return _call(db, "pg_try_advisory_lock", number)


def _lock_file(path: Path, name: str) -> int:
    """Opens the lock file, and creates it if needed. Returns the file descriptor.

    A file that root creates is given to the database's owner: otherwise the owner's
    next check could not open it. Symbolic links are not followed, because the owner
    could have put one there.
    """
    lock = f"{path}.{name}.lock"
    try:
        descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return os.open(lock, os.O_WRONLY | os.O_NOFOLLOW)
    is_root = os.geteuid() == 0
    if is_root:
        owned = path
        if not path.exists():  # during a restore
            owned = path.parent
        status = owned.stat()
        os.fchown(descriptor, status.st_uid, status.st_gid)
    return descriptor


def _call(db: Database, function: str, number: int) -> bool:
    """Calls a function of PostgreSQL for the advisory lock `number`; returns its result."""
    row = db.connection.execute_sql(f"SELECT {function}(%s)", (number,)).fetchone()  # noqa: S608
    return bool(row[0])
