"""Brings a database to this version, and says whether it is there.

Migrations run in the order of their numbers. There is no 0007 and never was: 0006 and 0008 were
written at the same time. A number says only what comes first; none is given to another migration.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playhouse.migrations import Runner

from btcpay.errors import DatabaseNotReady
from storage.database import Database, create_file, open_database, place_of, sqlite_path
from storage.faults import as_peewee_errors
from storage.postgres import OLDEST
from storage.queries import meta
from storage.sqlite import refuse_folder

MIGRATIONS = Path(__file__).parent / "migrations"
VERSIONS = sorted(path.stem for path in MIGRATIONS.glob("[0-9]*.py"))
FIRST, VERSION = VERSIONS[0], VERSIONS[-1]
_ADVISORY_LOCK = 0x62746370  # "btcp"; any number that no other program takes
_AGAIN_S = 0.1
REMEDY = (
    "look at BTCPAY_DATABASE_URL; or run `btcpay migrate` to make a new one, or `btcpay restore"
    " FILE` to bring back a backup"
)


def migrate(url: str, network: str) -> list[str]:
    """Runs the missing migrations under a lock; returns their names, in order.

    Raises DatabaseNotReady when the database is newer, or belongs to another network.
    """
    path = sqlite_path(url)
    if path:
        create_file(path)
    db = open_database(url)
    refuse_unfit(db)
    with only_one(db, url, "migrate", wait=True):
        runner = Runner(db.connection, str(MIGRATIONS))
        applied = runner.applied()
        refuse_newer(applied)
        if applied:
            _claim_network(db, network)
        done = runner.up()
        _claim_network(db, network)
    db.close()
    return list(done)


def version(db: Database) -> str | None:
    """The newest migration that the database has; None for an empty one."""
    with db.connected(), as_peewee_errors:
        if "schema_migration" not in db.connection.get_tables():
            return None
        return db.connection.execute_sql("SELECT max(name) FROM schema_migration").fetchone()[0]


def open_ready(url: str, network: str) -> Database:
    """The database, when it has exactly this version and network; none is made.

    Raises DatabaseNotReady, naming the command that helps.
    """
    refuse_missing(url)
    db = open_database(url)
    found = version(db)
    if found is None:
        raise DatabaseNotReady(f"{place_of(url)} is empty, or of another program: {REMEDY}")
    refuse_newer([found])
    if found != VERSION:
        raise DatabaseNotReady(
            f"the database is at version {found}, this program needs {VERSION}:"
            " run `btcpay migrate`"
        )
    _claim_network(db, network)
    return db


def refuse_missing(url: str) -> None:
    """Raises DatabaseNotReady where there is no SQLite file, or one without a byte."""
    path = sqlite_path(url)
    if path:
        refuse_folder(path)
    if path and not path.exists():
        raise DatabaseNotReady(f"there is no database at {place_of(url)}: {REMEDY}")
    if path and path.stat().st_size == 0:  # before it is opened, which would write to it
        raise DatabaseNotReady(f"the file {place_of(url)} is empty: {REMEDY}")


def refuse_newer(applied: Iterator[str] | list[str] | dict) -> None:
    """Raises DatabaseNotReady when a newer program has changed the schema."""
    newest = max(applied, default="")
    if newest > VERSION:
        raise DatabaseNotReady(
            f"the database is at version {newest}, newer than this program's {VERSION}:"
            " install the newer program"
        )


def refuse_unfit(db: Database) -> None:
    """Raises DatabaseNotReady for a server that is too old, or does not store every letter."""
    if not db.is_server:
        return
    with db.connected():
        version = db.connection.server_version // 10_000
        (encoding,) = db.connection.execute_sql("SHOW server_encoding").fetchone()
    if version < OLDEST:
        raise DatabaseNotReady(f"this is PostgreSQL {version}: {OLDEST} or newer is needed")
    if encoding != "UTF8":
        raise DatabaseNotReady(
            f"the database's encoding is {encoding}: create it with ENCODING 'UTF8'"
        )


def _claim_network(db: Database, network: str) -> None:
    kept = meta.keep(db, meta.Key.NETWORK, network)
    if kept != network:
        raise DatabaseNotReady(
            f"the database belongs to {kept}, BTCPAY_NETWORK says {network}:"
            f" set BTCPAY_DATABASE_URL to another database, or BTCPAY_NETWORK to {kept}"
        )


@contextmanager
def only_one(db: Database, url: str, name: str, wait: bool = False) -> Iterator[bool]:
    """Yields whether this process is the only one doing `name` with this database.

    The lock is the operating system's or the server's, so that it ends with its process.
    """
    path = sqlite_path(url)
    if path:
        with open(_lock_file(path, name), "w", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            yield True
        return
    number = _ADVISORY_LOCK + sum(name.encode())
    # The lock belongs to its connection, so this thread keeps the connection.
    with db.connected():
        while not (taken := _ask(db, "pg_try_advisory_lock", number)) and wait:
            time.sleep(_AGAIN_S)
        try:
            yield taken
        finally:
            if taken:
                _ask(db, "pg_advisory_unlock", number)


def _lock_file(path: Path, name: str) -> int:
    """Opens the file that is locked; the database's owner owns it, also when root makes it.

    Else the owner's next check could not open it. The owner may own the folder: no link of his is
    followed.
    """
    lock = f"{path}.{name}.lock"
    try:
        made = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return os.open(lock, os.O_WRONLY | os.O_NOFOLLOW)
    if os.geteuid() == 0:
        owner = (path if path.exists() else path.parent).stat()  # a restore comes before it
        os.fchown(made, owner.st_uid, owner.st_gid)
    return made


def _ask(db: Database, function: str, number: int) -> bool:
    return db.connection.execute_sql(f"SELECT {function}(%s)", (number,)).fetchone()[0]  # noqa: S608
