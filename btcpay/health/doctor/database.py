"""The database and its disk: there, ours, of this version, writable, closed to others, roomy."""

from collections.abc import Iterator
from pathlib import Path

from peewee import DatabaseError, PeeweeException

from btcpay.health.doctor.shop import Shop
from btcpay.settings.settings import Settings
from btcpay.values.errors import DatabaseNotReady
from btcpay.values.finding import GREEN, RED, YELLOW, Finding
from storage import versions
from storage.database import Database, in_one_line, open_database, place_of, sqlite_path
from storage.faults import as_peewee_errors
from storage.queries import meta

NAME = "database"
OF_FILE = (
    "look at its disk, its owner and its file mode; restore a backup if it is damaged"
)
OF_SERVER = "check that the server runs and lets this user write; look at BLOCKTILL_DATABASE_URL"


def examine(settings: Settings, is_whole: bool) -> tuple[Finding, Database | None]:
    """The finding, and the database if it can be read, even if it takes no writes.

    `is_whole`: every page of a file is read, which takes seconds if it is large.
    """
    path = sqlite_path(settings.database_url)
    trouble = OF_FILE if path else OF_SERVER
    try:
        versions.refuse_missing(settings.database_url)
        db = open_database(settings.database_url)
        with db.connected():
            versions.refuse_unfit(db)
            if is_whole and not db.is_server:
                _require_whole(db)
            finding = _version(db, settings)
    except DatabaseNotReady as error:
        sentence, _, remedy = str(error).partition(": ")
        return Finding(NAME, RED, sentence, remedy), None
    except PeeweeException as error:
        return Finding(
            NAME, RED, f"cannot be used: {in_one_line(error)}", trouble
        ), None
    try:
        meta.try_to_write(db)
    except PeeweeException as error:
        return Finding(NAME, RED, f"takes no writes: {in_one_line(error)}", trouble), db
    return finding, db


def _require_whole(db: Database) -> None:
    """Raises DatabaseError when a page is damaged; reads all of the file."""
    with as_peewee_errors:
        (answer,) = db.connection.execute_sql("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        raise DatabaseError(answer)


def _version(db: Database, settings: Settings) -> Finding:
    """Raises DatabaseNotReady for another version or network."""
    found = versions.version(db)
    network = settings.network.name
    versions.refuse_version(found, place_of(settings.database_url))
    versions.refuse_network(meta.get(db, meta.Key.NETWORK), network)
    kind = "SQLite"
    if db.is_server:
        major, minor = divmod(db.connection.server_version, 10_000)
        kind = f"PostgreSQL {major}.{minor}"
    return Finding(NAME, GREEN, f"{kind}, version {found}, {network}")


# Below the first a restore may lack room for two more copies. Below the second SQLite soon cannot
# write its log.
LITTLE_BYTES = 1_000_000_000
TOO_LITTLE_BYTES = 100_000_000
NOT_THE_OWNER = 0o077
OWN_FOLDER = (
    "chmod 700 '{}', if it holds nothing else; or move the database into a folder of its own, such"
    " as /var/lib/blocktill (mode 700)"
)
LISTED_OR_WRITTEN = 0o066  # others cannot list a folder that they may only pass through


def modes(shop: Shop) -> Iterator[Finding]:
    """Only the service's user may read customers' addresses and the hashes of keys."""
    path = sqlite_path(shop.settings.database_url)
    if path is None or not path.is_file():
        return
    files = [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm")]
    open_files = [file for file in files if _mode(file) & NOT_THE_OWNER]
    folder = path.parent.absolute()
    remedies = []
    open_to_all = [f"{file}" for file in open_files]
    if _mode(folder) & LISTED_OR_WRITTEN:
        open_to_all.append(f"the folder {folder}")
        remedies.append(OWN_FOLDER.format(folder))
    if open_files:
        remedies.append("chmod 600" + "".join(f" '{file}'" for file in open_files))
    if remedies:
        yield Finding(
            "file modes",
            RED,
            f"other users may use {', '.join(open_to_all)}",
            "; ".join(remedies),
        )
    else:
        yield Finding("file modes", GREEN, "only its owner may use the database")


def _mode(path: Path) -> int:
    if path.exists():
        return path.stat().st_mode
    return 0


def free_space(shop: Shop) -> Iterator[Finding]:
    """A full disk stops every sale."""
    path = sqlite_path(shop.settings.database_url)
    if path is None or not path.parent.exists():
        return
    free = shop.free_bytes(path.parent)
    colour = (
        RED if free < TOO_LITTLE_BYTES else YELLOW if free < LITTLE_BYTES else GREEN
    )
    remedy = (
        "" if colour == GREEN else f"make room on the disk of {path.parent.absolute()}"
    )
    yield Finding("disk", colour, f"{free // 1_000_000} MB are free", remedy)
