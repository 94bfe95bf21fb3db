"""Examines the database and its disk.

The database must exist, have this version and network, accept writes, and be closed to
other users. The disk must have free space.
"""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from btcpay.health.doctor.shop import Shop
from btcpay.settings.settings import Settings
from btcpay.values.errors import DatabaseNotReady
from btcpay.values.finding import GREEN, RED, YELLOW, Finding
from storage import versions
from storage.database import Database, in_one_line, open_database, place_of, sqlite_path
from storage.faults import DatabaseError, PeeweeException, as_peewee_errors
from storage.queries import meta

NAME = "database"
FILE_REMEDY = (
    "look at its disk, its owner and its file mode; restore a backup if it is damaged"
)
SERVER_REMEDY = (
    "check that the server runs and lets this user write;"
    " look at BLOCKTILL_DATABASE_URL"
)


class Examination(NamedTuple):
    """The finding about the database, and the opened database.

    `db` is None if the database cannot be read. If it can be read but not written, `db`
    is set and the finding is red.
    """

    finding: Finding
    db: Database | None


def examine(settings: Settings, every_page: bool) -> Examination:
    """Opens the database, and returns the finding about it.

    If `every_page` is True, checks every page of a SQLite file, which takes seconds for
    a large file.
    """
    remedy = SERVER_REMEDY
    if sqlite_path(settings.database_url):
        remedy = FILE_REMEDY
    try:
        db, finding = _open_and_read(settings, every_page)
    except DatabaseNotReady as error:
        # The message is the problem, a colon, and the remedy.
        sentence, _, own_remedy = str(error).partition(": ")
        return Examination(Finding(NAME, RED, sentence, own_remedy), None)
    except PeeweeException as error:
        sentence = f"cannot be used: {in_one_line(error)}"
        return Examination(Finding(NAME, RED, sentence, remedy), None)
    try:
        meta.try_to_write(db)
    except PeeweeException as error:
        sentence = f"takes no writes: {in_one_line(error)}"
        return Examination(Finding(NAME, RED, sentence, remedy), db)
    return Examination(finding, db)


def _open_and_read(settings: Settings, every_page: bool) -> tuple[Database, Finding]:
    """Opens the database, and returns it with a green finding about its version.

    Raises DatabaseNotReady if the database is missing, or has another version or
    network. Raises PeeweeException if it cannot be read.
    """
    versions.refuse_missing(settings.database_url)
    db = open_database(settings.database_url)
    with db.borrow_connection():
        versions.refuse_unfit(db)
        if every_page and not db.is_server:
            _require_whole(db)
        finding = _version(db, settings)
    return db, finding


def _require_whole(db: Database) -> None:
    """Raises DatabaseError if a page is damaged. Reads the whole SQLite file."""
    with as_peewee_errors:
        (answer,) = db.connection.execute_sql("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        raise DatabaseError(answer)


def _version(db: Database, settings: Settings) -> Finding:
    """Returns a green finding with the version.

    Raises DatabaseNotReady if the database has another version or network.
    """
    version = versions.version(db)
    network = settings.network.name
    versions.refuse_version(version, place_of(settings.database_url))
    versions.refuse_network(meta.get(db, meta.Key.NETWORK), network)
    kind = "SQLite"
    if db.is_server:
        major, minor = divmod(db.connection.server_version, 10_000)
        kind = f"PostgreSQL {major}.{minor}"
    return Finding(NAME, GREEN, f"{kind}, version {version}, {network}")


# Below TOO_LITTLE_BYTES SQLite may soon be unable to write its log (WAL). Below LITTLE_BYTES a
# restore may lack space for two more copies of the database.
TOO_LITTLE_BYTES = 100_000_000
LITTLE_BYTES = 1_000_000_000
BYTES_PER_MB = 1_000_000
FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# The permissions to list a folder or to write to it. Others may have the permission to enter it
# (execute), since that does not let them list it.
LISTED_OR_WRITTEN = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
FOLDER_REMEDY = (
    "chmod 700 '{}', if it holds nothing else; or move the database into a folder of its own, such"
    " as /var/lib/blocktill (mode 700)"
)
SUFFIXES = ("", "-wal", "-shm")  # of SQLite's database, log and shared memory


def modes(shop: Shop) -> Iterator[Finding]:
    """Yields a finding about the file modes of the SQLite database.

    It is red if other users may use the files or list their folder, since the files
    contain customers' e-mail addresses and hashes of API keys. Otherwise it is green.
    Yields nothing for PostgreSQL.
    """
    path = sqlite_path(shop.settings.database_url)
    if path is None or not path.is_file():
        return
    files = [Path(f"{path}{suffix}") for suffix in SUFFIXES]
    exposed_files = [str(file) for file in files if _mode(file) & FOR_OTHERS]
    exposed = list(exposed_files)
    remedies = []
    folder = path.parent.absolute()
    if _mode(folder) & LISTED_OR_WRITTEN:
        exposed.append(f"the folder {folder}")
        remedies.append(FOLDER_REMEDY.format(folder))
    if exposed_files:
        quoted = [f"'{file}'" for file in exposed_files]
        remedies.append(f"chmod 600 {' '.join(quoted)}")
    if exposed:
        sentence = f"other users may use {', '.join(exposed)}"
        yield Finding("file modes", RED, sentence, "; ".join(remedies))
    else:
        yield Finding("file modes", GREEN, "only its owner may use the database")


def _mode(path: Path) -> int:
    """Returns the file mode with its permission bits; 0 if there is no such file."""
    if path.exists():
        return path.stat().st_mode
    return 0


def free_space(shop: Shop) -> Iterator[Finding]:
    """Yields a finding about the free space on the SQLite file's disk.

    The finding is red below TOO_LITTLE_BYTES, yellow below LITTLE_BYTES, else green. A
    full disk stops every sale.
    """
    path = sqlite_path(shop.settings.database_url)
    if path is None or not path.parent.exists():
        return
    free_bytes = shop.free_bytes(path.parent)
    sentence = f"{free_bytes // BYTES_PER_MB} MB are free"
    remedy = f"make room on the disk of {path.parent.absolute()}"
    if free_bytes < TOO_LITTLE_BYTES:
        yield Finding("disk", RED, sentence, remedy)
    elif free_bytes < LITTLE_BYTES:
        yield Finding("disk", YELLOW, sentence, remedy)
    else:
        yield Finding("disk", GREEN, sentence)
