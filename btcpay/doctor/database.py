"""The database: there, ours, of this version, willing to be written to."""

import sqlite3

from peewee import PeeweeException

from btcpay.doctor.finding import GREEN, RED, Finding
from btcpay.settings import Settings
from storage import meta, schema
from storage.database import Database, open_database, sqlite_path

NAME = "database"


def look_into(settings: Settings) -> tuple[Finding, Database | None]:
    """The finding, and the database when it can be used; a missing one is not made."""
    path = sqlite_path(settings.database_url)
    if path and not path.exists():
        return Finding(
            NAME,
            RED,
            f"there is none at {path}",
            "look at BTCPAY_DATABASE_URL; `btcpay migrate` makes a new one, `btcpay restore FILE`"
            " brings back a backup",
        ), None
    db = open_database(settings.database_url)
    try:
        db.connection.connect(reuse_if_open=True)
        finding = _version(db, settings)
        with db.write():  # a read-only file refuses the lock
            pass
        if path:
            _require_whole(db)
    except (PeeweeException, sqlite3.Error) as error:
        return Finding(
            NAME,
            RED,
            f"cannot be used: {error}",
            "look at its disk, its owner and its file mode; restore a backup when it is damaged",
        ), None
    return finding, db if finding.colour == GREEN else None


def _require_whole(db: Database) -> None:
    """Raises sqlite3.DatabaseError when a page is damaged; reads all of the file."""
    (told,) = db.connection.execute_sql("PRAGMA quick_check(1)").fetchone()
    if told != "ok":
        raise sqlite3.DatabaseError(told)


def _version(db: Database, settings: Settings) -> Finding:
    found, wanted, network = schema.version(db), schema.VERSION, settings.network.name
    if found is None:
        return Finding(NAME, RED, "it is empty, or of another program", "run `btcpay migrate`")
    if found < wanted:
        sentence = f"it is at version {found}, this program needs {wanted}"
        return Finding(NAME, RED, sentence, "run `btcpay migrate`, after `btcpay backup FILE`")
    if found > wanted:
        sentence = f"it is at version {found}, newer than this program's {wanted}"
        return Finding(NAME, RED, sentence, "install the newer program")
    belongs = meta.get(db, "network")
    if belongs not in (None, network):
        sentence = f"it belongs to {belongs}, BTCPAY_NETWORK says {network}"
        return Finding(NAME, RED, sentence, "set BTCPAY_DATABASE_URL to another database")
    kind = "SQLite" if sqlite_path(settings.database_url) else "PostgreSQL"
    return Finding(NAME, GREEN, f"{kind}, version {found}, {network}")
