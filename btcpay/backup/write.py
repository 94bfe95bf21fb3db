"""Makes a backup: a complete copy of a SQLite database, even while it is in use."""

from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from btcpay.values.errors import CommandError
from storage import versions
from storage.backup import sqlite_file
from storage.database import in_one_line, open_database, sqlite_path
from storage.faults import PeeweeException
from storage.queries import meta

DOCS = "docs/operators/backup.md"


def write_backup(
    database_url: str,
    file: Path,
    overwrite: bool = False,
) -> sqlite_file.FileFacts:
    """Writes a backup to `file`. Returns its schema version and its network.

    The copy is checked before it replaces `file`. Raises CommandError, and leaves
    `file` as it was, if there is no SQLite database, if `file` exists and `overwrite`
    is False, or if the copy is damaged.
    """
    path = _file_of(database_url)
    refuse_own(path, file)
    if not file.parent.is_dir():
        raise CommandError(f"there is no folder {file.parent}: make it first")
    if file.exists() and not overwrite:
        raise CommandError(f"{file} exists: name another file, or say --force")
    sqlite_file.discard_all(file, "part")
    with sqlite_file.new_file(file, "part") as part:
        sqlite_file.copy(path, part)
        facts = sqlite_file.inspect(part, path)
        sqlite_file.publish(part, file)
    return facts


def open_backup(database_url: str) -> BinaryIO:
    """Makes a backup for a download, and returns it as an open file.

    The file is made beside the database, and its name is deleted at once. So the file
    disappears when it is closed, even if the process dies. Raises CommandError if there
    is no SQLite database, or if the copy is damaged.
    """
    path = _file_of(database_url)
    sqlite_file.discard_all(path, "download")
    with sqlite_file.new_file(path, "download") as part:
        sqlite_file.copy(path, part)
        sqlite_file.inspect(part, path)
        # `new_file` deletes the name when its block ends. The open file stays readable.
        return part.open("rb")


def _file_of(database_url: str) -> Path:
    """Returns the SQLite file. Raises CommandError if there is none."""
    path = sqlite_path(database_url)
    if path is None:
        raise CommandError(
            f"this is a PostgreSQL database: use pg_dump, as {DOCS} says"
        )
    versions.refuse_missing(database_url)
    return path


def note_backup(database_url: str, at: datetime) -> str:
    """Stores the time of the backup, for the merchant's pages.

    Returns "", or the reason why the time could not be stored: a read-only database can
    be backed up, but cannot store the time. The database may have an older schema.
    """
    with closing(open_database(database_url)) as db:
        try:
            meta.put_time(db, meta.Key.BACKED_UP_MS, at)
        except PeeweeException as error:
            return in_one_line(error)
    return ""


def refuse_own(path: Path, file: Path) -> None:
    """Raises CommandError if `file` is the database at `path`, or its WAL or journal."""
    own_files = [
        Path(f"{path}{suffix}").resolve() for suffix in ("", "-wal", "-shm", "-journal")
    ]
    has_own_name = file.resolve() in own_files
    both_exist = file.exists() and path.exists()
    is_hard_link = both_exist and file.samefile(path)
    if has_own_name or is_hard_link:
        raise CommandError(f"{file} is the database itself")
