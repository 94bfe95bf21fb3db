"""The database: whether it is there, ours, of this version, and takes writes."""

from peewee import DatabaseError, PeeweeException

from btcpay.settings.settings import Settings
from btcpay.values.errors import DatabaseNotReady
from btcpay.values.finding import GREEN, RED, Finding
from storage import versions
from storage.database import Database, in_one_line, open_database, place_of, sqlite_path
from storage.faults import as_peewee_errors
from storage.queries import meta

NAME = "database"
OF_FILE = "look at its disk, its owner and its file mode; restore a backup if it is damaged"
OF_SERVER = "check that the server runs and lets this user write; look at BTCPAY_DATABASE_URL"


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
        return Finding(NAME, RED, f"cannot be used: {in_one_line(error)}", trouble), None
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
    found, network = versions.version(db), settings.network.name
    versions.refuse_version(found, place_of(settings.database_url))
    versions.refuse_network(meta.get(db, meta.Key.NETWORK), network)
    return Finding(NAME, GREEN, f"{_kind(db)}, version {found}, {network}")


def _kind(db: Database) -> str:
    """`SQLite`, or `PostgreSQL 15.14`."""
    if not db.is_server:
        return "SQLite"
    major, minor = divmod(db.connection.server_version, 10_000)
    return f"PostgreSQL {major}.{minor}"
