"""Migrates a database to this program's version, and checks that it fits the program.

There is no downgrade. Code that runs during a step (a migration) must write column names
out. The models have the columns after the last step, and the database may be several
steps behind.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from btcpay.values.errors import DatabaseNotReady
from storage.database import Database, open_database, place_of, sqlite_path
from storage.faults import as_peewee_errors
from storage.locks import only_one
from storage.queries import meta
from storage.sqlite import create_file
from storage.steps import STEPS, hash_of_steps, statements, steps

VERSION = len(steps())  # the number of files
REMEDY = (
    "look at BLOCKTILL_DATABASE_URL; or run `blocktill migrate` to make a new one, or"
    " `blocktill restore FILE` to bring back a backup"
)
UNKNOWN = 0  # the version of a database that has tables, but none of this program's
# The version of a database that a checkout from before 0.4.0 made, with other steps.
OLDER = -1
MARK = "SELECT * FROM schema_step"  # the table has one row; in 0.3.0 it had no hash
# tables that every version has had
_LASTING_TABLES = frozenset({"merchant", "invoice"})
OLDER_REMEDY = (
    "its data cannot be carried over. Keep it, let BLOCKTILL_DATABASE_URL name a new one, run"
    " `blocktill migrate`, add your merchants again with the same account keys, and run"
    " `blocktill restore --in-place`, so that no address is given out twice"
)


def migrate(url: str, network: str, folder: Path = STEPS) -> list[str]:
    """Runs the steps (migrations) of `folder` that the database lacks, under a lock.

    Returns the names of these steps in order. Creates a missing SQLite file. Raises
    DatabaseNotReady if the database is newer, was made by an early version with other
    steps or by another program, belongs to another network, or is a PostgreSQL database
    without UTF-8.
    """
    path = sqlite_path(url)
    if path:
        create_file(path)
    db = open_database(url)
    refuse_unfit(db)
    with only_one(db, url, "migrate", wait=True):
        all_steps = steps(folder)
        current = version(db, folder)
        if current is not None:
            refuse_foreign(current, len(all_steps), place_of(url))
            claim_network(db, network)
        steps_run = current or 0
        missing_steps = all_steps[steps_run:]
        for number, step in enumerate(missing_steps, start=steps_run + 1):
            sha256 = hash_of_steps(folder, number)
            _run(db, step, number, sha256)
        claim_network(db, network)  # a new database has its tables only now
    db.close()
    return [step.stem for step in missing_steps]


def _run(db: Database, step: Path, number: int, sha256: str) -> None:
    """Runs a step and stores the new version, in one transaction."""
    with db.write():
        if db.is_server:
            _lock_tables(db)
        for statement in statements(step, db.is_server):
            db.connection.execute_sql(statement)
        db.connection.execute_sql("DELETE FROM schema_step")
        db.connection.execute_sql(
            f"INSERT INTO schema_step VALUES ({number:d}, '{sha256}')"  # noqa: S608
        )


def _lock_tables(db: Database) -> None:
    """Locks all tables: a running service must not write to one while it is copied."""
    tables = db.connection.get_tables()
    if tables:
        names = ", ".join(f'"{name}"' for name in tables)
        db.connection.execute_sql(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")


def version(db: Database, folder: Path = STEPS) -> int | None:
    """Returns the number of steps (migrations) that were run in the database.

    Returns None if it has no tables, OLDER if an early version of this program with
    other steps made them, and UNKNOWN if this program did not make them.
    """
    with db.borrow_connection(), as_peewee_errors:
        tables = db.connection.get_tables()
        if "schema_step" in tables:
            return version_in(db.connection.execute_sql(MARK).fetchone(), folder)
        if not tables:
            return None
        if is_older(tables):
            return OLDER
        return UNKNOWN


def version_in(mark: Sequence[Any] | None, folder: Path = STEPS) -> int:
    """Returns the version in `mark`, the row that the query MARK returned.

    Returns UNKNOWN if there is no row, and OLDER if the steps that were run differ from
    the files in `folder`. A version above the number of these files is not checked.
    """
    if mark is None:
        return UNKNOWN
    number, *hashes = mark  # no hash in 0.3.0, later one
    is_newer = number > len(steps(folder))
    if not is_newer and hashes != [hash_of_steps(folder, number)]:
        return OLDER
    return int(number)


def is_older(tables: Collection[str]) -> bool:
    """True if an early version, which had no table `schema_step`, made the tables."""
    return "schema_step" not in tables and _LASTING_TABLES.issubset(tables)


def open_ready(url: str, network: str) -> Database:
    """Opens a database that has exactly this program's version and this network.

    Creates no file. Raises DatabaseNotReady for any other database; the message names
    the command that helps.
    """
    refuse_missing(url)
    db = open_database(url)
    refuse_version(version(db), place_of(url))
    claim_network(db, network)
    return db


def refuse_missing(url: str) -> None:
    """Raises DatabaseNotReady if the SQLite file is missing or has no bytes.

    Does nothing for PostgreSQL.
    """
    path = sqlite_path(url)
    if path is None:
        return
    if not path.exists():
        raise DatabaseNotReady(f"there is no database at {place_of(url)}: {REMEDY}")
    # checked before the file is opened, because opening would write to it
    if path.stat().st_size == 0:
        raise DatabaseNotReady(f"the file {place_of(url)} is empty: {REMEDY}")


def refuse_version(current: int | None, place: str, needed: int = VERSION) -> None:
    """Raises DatabaseNotReady if the database's version is not `needed`.

    `current` is the result of `version`. `place` names the database, for the message.
    """
    if current is None:
        raise DatabaseNotReady(f"{place} is empty: {REMEDY}")
    refuse_foreign(current, needed, place)
    if current != needed:
        raise DatabaseNotReady(
            f"the database is at version {current}, this program needs {needed}:"
            " run `blocktill migrate`, after a backup"
        )


def refuse_foreign(current: int, newest: int, place: str) -> None:
    """Raises DatabaseNotReady if no steps lead from version `current` to `newest`."""
    if current == OLDER:
        raise DatabaseNotReady(
            f"{place} is of an older version of this program: {OLDER_REMEDY}"
        )
    if current == UNKNOWN:
        raise DatabaseNotReady(
            f"{place} is not a database of this program: let BLOCKTILL_DATABASE_URL name a new one,"
            " and run `blocktill migrate`"
        )
    if current > newest:
        raise DatabaseNotReady(
            f"the database is at version {current}, newer than this program's {newest}:"
            " install the newer program"
        )


def refuse_unfit(db: Database) -> None:
    """Raises DatabaseNotReady if a PostgreSQL database's encoding is not UTF-8."""
    if not db.is_server:
        return
    with db.borrow_connection():
        (encoding,) = db.connection.execute_sql("SHOW server_encoding").fetchone()
    if encoding != "UTF8":
        raise DatabaseNotReady(
            f"the database's encoding is {encoding}: create it with ENCODING 'UTF8'"
        )


def claim_network(db: Database, network: str) -> None:
    """Stores the name of the network, unless the database has one already.

    Raises DatabaseNotReady if the database has the name of another network.
    """
    refuse_network(meta.keep(db, meta.Key.NETWORK, network), network)


def refuse_network(owner: str | None, network: str) -> None:
    """Raises DatabaseNotReady if the database belongs to another network than `network`.

    `owner` is the network in the database's table `meta`; None if it has none.
    """
    if owner not in (None, network):
        raise DatabaseNotReady(
            f"the database belongs to {owner}, but BLOCKTILL_NETWORK says {network}:"
            f" set BLOCKTILL_DATABASE_URL to another database, or BLOCKTILL_NETWORK to {owner}"
        )
