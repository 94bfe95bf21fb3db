"""Copies, inspects and replaces whole SQLite databases.

Source: SQLite's Online Backup API (sqlite.org/backup.html). One step copies all pages
as of one moment. A copy into a database that is in use is one transaction there.
"""

import fcntl
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from btcpay.values.errors import CommandError
from storage.backup.schema_objects import (
    SchemaObject,
    foreign_objects,
    objects_by_version,
    objects_in,
)
from storage.queries.meta import Key
from storage.sqlite import create_file, limit_values, refuse_old_library
from storage.versions import (
    MARK,
    OLDER,
    OLDER_REMEDY,
    UNKNOWN,
    is_older,
    version_in,
)

# seconds to wait for a lock: a request holds it for milliseconds, a service while it runs
BUSY_S = 2
MOVE_AWAY = "move it, {0}-wal and {0}-shm to another folder first"
MOST_NAMED = 5
NETWORK = f"SELECT value FROM meta WHERE name = '{Key.NETWORK.value}'"  # noqa: S608 - no user input
_OURS = {"meta", "merchant", "invoice", "output", "schema_step"}


def read_only(path: Path) -> sqlite3.Connection:
    """Returns a read-only connection. A missing file is not created.

    The connection raises sqlite3.Error at its first use if the file cannot be opened,
    and later for a row larger than MAX_VALUE_BYTES.
    """
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=BUSY_S
    )
    limit_values(connection)
    return connection


@contextmanager
def new_file(path: Path, purpose: str) -> Iterator[Path]:
    """Creates an empty temporary file beside `path`, and yields its path.

    Only the owner can read it. It is deleted at the end of the block unless it was
    renamed. It is locked until then, so that `discard_all` skips it.
    """
    descriptor, name = tempfile.mkstemp(
        suffix=f".{purpose}.blocktill", prefix=f".{path.name}.", dir=path.parent
    )
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield Path(name)
    finally:
        discard(Path(name))
        os.close(descriptor)


def discard(path: Path) -> None:
    """Deletes a SQLite file, and the files that SQLite and `migrate` make beside it."""
    for suffix in ("", "-wal", "-shm", "-journal", ".migrate.lock"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def discard_all(path: Path, purpose: str) -> None:
    """Deletes the temporary files that processes left when they were killed.

    `new_file` made them for this `purpose` in the folder of `path`.
    """
    for leftover in path.parent.glob(f".*.{purpose}.blocktill"):
        with suppress(OSError), leftover.open("rb") as file:
            # raises BlockingIOError while the file's process lives
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            discard(leftover)


def copy(source: Path, target: Path) -> None:
    """Copies the state of `source` at one moment into the file `target`.

    `source` may be in use. `target` gets no write-ahead log. Raises CommandError if
    `source` is damaged, locked or missing, or if `target` cannot be written. Raises
    DatabaseNotReady if Python's SQLite is too old.
    """
    refuse_old_library()
    try:
        with closing(read_only(source)) as old:
            copy_all(old, target)
    except sqlite3.OperationalError as error:
        raise CommandError(f"{source} cannot be copied: {error}") from None
    except sqlite3.DatabaseError as error:
        raise CommandError(f"{source} is damaged, or not a database: {error}") from None


def copy_all(old: sqlite3.Connection, target: Path) -> None:
    """Copies the database into the file `target`, which gets no write-ahead log."""
    with closing(sqlite3.connect(target)) as new:
        old.backup(new)
        new.execute("PRAGMA journal_mode = DELETE").fetchall()


class FileFacts(NamedTuple):
    """The version of a database file, and its network (None if it has none)."""

    version: int
    network: str | None


def inspect(path: Path, name: Path) -> FileFacts:
    """Checks that a file is an intact database of this program.

    Returns its version and its network. Error messages call the file `name`. Raises
    CommandError in these cases:

    - The file is damaged.
    - It is a database of another program, or of an early version with other migrations.
    - Its schema objects are not exactly those that this program's migrations create.
      They are checked first, because the integrity check would run code in them.
    """
    try:
        with closing(read_only(path)) as db:
            _check_objects(objects_in(db), name)
            version = version_in(db.execute(MARK).fetchone())
            if version == OLDER:
                raise CommandError(older_message(name))
            faults = _faults_of(db)
            network_row = db.execute(NETWORK).fetchone()
    except sqlite3.Error as error:
        raise CommandError(f"{name} is damaged: {error}") from None
    if version == UNKNOWN:
        faults.append("it has no version")
    if faults:
        raise CommandError(f"{name} is damaged: {'; '.join(faults[:3])}")
    network = None
    if network_row is not None:
        (network,) = network_row
    return FileFacts(version, network)


def _check_objects(objects: list[SchemaObject], name: Path) -> None:
    """Raises CommandError if this program would not make exactly these schema objects."""
    object_names = {entry.name for entry in objects}
    if is_older(object_names):
        raise CommandError(older_message(name))
    if not object_names >= _OURS:
        raise CommandError(f"{name} is not a database of this program")
    # The steps of 0.3.0 created `schema_step` without a hash.
    if not _has_our_mark(objects):
        raise CommandError(older_message(name))
    foreign = foreign_objects(objects)
    if foreign:
        raise CommandError(
            f"{name} holds what this version of the program does not make, and may run code"
            f" here, or an older checkout made it:"
            f" {', '.join(foreign[:MOST_NAMED])}"
        )


def older_message(name: Path) -> str:
    """Returns a message which says that an older version of this program made the file."""
    return f"{name} is of an older version of this program: {OLDER_REMEDY}"


def _faults_of(db: sqlite3.Connection) -> list[str]:
    """Returns the errors that SQLite's checks of the file and of its foreign keys report."""
    faults = []
    for (message,) in db.execute("PRAGMA integrity_check"):
        if message != "ok":
            faults.append(message)
    for table, *_ in db.execute("PRAGMA foreign_key_check"):
        faults.append(f"a row of {table}")
    return faults


def _has_our_mark(objects: list[SchemaObject]) -> bool:
    """True if this program's steps created the table `schema_step`."""
    table = next(entry for entry in objects if entry.name == "schema_step")
    return any(table in ours for ours in objects_by_version())


def publish(path: Path, target: Path) -> None:
    """Renames a finished file to `target`, safe against a power cut.

    Both the file and its folder are flushed to disk, so that `target` is always whole.
    """
    _flush(path)
    os.replace(path, target)
    _flush(target.parent)


def _flush(path: Path) -> None:
    """Returns once the file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


@contextmanager
def alone(path: Path) -> Iterator[sqlite3.Connection]:
    """Yields a connection to a database that no other program has open.

    Other programs can use the database only after the block. A missing file is created.
    Raises CommandError if another program has the database open, such as a service, a
    check or a shell. SQLite's locks show this, because in WAL mode each connection
    keeps a shared lock.
    """
    create_file(path)
    with closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as db:
        try:
            db.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
            db.execute("PRAGMA synchronous = FULL")
            db.execute("BEGIN EXCLUSIVE")
            db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise CommandError(f"{path} cannot be used: {error}") from None
            raise CommandError(
                f"{path} is in use: stop the service (the sandbox too) and every check first"
                " (`fuser` names who has it open)"
            ) from None
        except sqlite3.DatabaseError as error:
            raise CommandError(
                f"{path} is no longer a database ({error}): {MOVE_AWAY.format(path)}"
            ) from None
        yield db


def replace(old: sqlite3.Connection, new: Path) -> None:
    """Replaces the contents of the database `old` with those of the file `new`.

    This is one transaction: if the process dies, the database has either the old or the
    new contents. Raises CommandError if nothing could be replaced.
    """
    try:
        with closing(read_only(new)) as source:
            if _page_size(source) != _page_size(old):
                # In WAL mode SQLite refuses another page size. `open_database` sets WAL again.
                old.execute("PRAGMA journal_mode = DELETE").fetchall()
            source.backup(old)
    except sqlite3.Error as error:
        raise CommandError(f"nothing was replaced: {error}") from None


def _page_size(db: sqlite3.Connection) -> int:
    """Returns the size of the database's pages, in bytes."""
    (size,) = db.execute("PRAGMA page_size").fetchone()
    return int(size)
