"""Whether a database is what this program needs: its version, its network, its kind of server."""

from collections.abc import Iterator
from pathlib import Path

from btcpay.values.errors import DatabaseNotReady
from storage.database import Database, open_database, place_of, sqlite_path
from storage.faults import as_peewee_errors
from storage.postgres import OLDEST
from storage.queries import meta
from storage.sqlite import refuse_folder

MIGRATIONS = Path(__file__).parent / "migrations"
VERSIONS = sorted(path.stem for path in MIGRATIONS.glob("[0-9]*.py"))
FIRST, VERSION = VERSIONS[0], VERSIONS[-1]
REMEDY = (
    "look at BTCPAY_DATABASE_URL; or run `btcpay migrate` to make a new one, or `btcpay restore"
    " FILE` to bring back a backup"
)


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
    claim_network(db, network)
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


def claim_network(db: Database, network: str) -> None:
    """Makes it the database's network, if it has none. Raises DatabaseNotReady for another."""
    kept = meta.keep(db, meta.Key.NETWORK, network)
    if kept != network:
        raise DatabaseNotReady(
            f"the database belongs to {kept}, BTCPAY_NETWORK says {network}:"
            f" set BTCPAY_DATABASE_URL to another database, or BTCPAY_NETWORK to {kept}"
        )
