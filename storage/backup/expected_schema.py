"""What the migrations make of a SQLite file, version by version, and what else stands in one.

A view, a trigger, a default, a CHECK or an indexed expression is code: whoever plants one in a
backup runs it here. So a file is only asked which objects it has, until all of them are known.
"""

import sqlite3
import tempfile
from functools import cache
from pathlib import Path

from peewee import SqliteDatabase
from playhouse.migrations import Runner

from storage.versions import MIGRATIONS, VERSIONS

# An object as SQLite keeps it: type, name, table, and the statement that made it.
SchemaObject = tuple[str, str, str, str | None]
_ALL = "SELECT type, name, tbl_name, sql FROM sqlite_master"


def objects_in(db: sqlite3.Connection) -> list[SchemaObject]:
    """Every object of a database, sorted. Reading this runs nothing of it."""
    db.execute("PRAGMA trusted_schema = OFF")
    return sorted(db.execute(_ALL).fetchall(), key=repr)


@cache
def objects_by_version() -> dict[str, list[SchemaObject]]:
    """What a database of each version has, from empty ones that are migrated here."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        db = SqliteDatabase(str(Path(folder, "new.db")))
        for version in VERSIONS:
            Runner(db, str(MIGRATIONS)).up(version)
            found[version] = objects_in(db.connection())
        db.close()
    return found


def planted(found: list[SchemaObject]) -> list[str]:
    """What the migrations did not make, in words; nothing when all objects are of one version.

    Compares with the nearest version, and also says what of that is missing.
    """
    strange = min(
        ([*(set(found) ^ set(made)), *_doubled(found)] for made in objects_by_version().values()),
        key=len,
    )
    return sorted({f"{kind} {name}" for kind, name, _, _ in strange})


def _doubled(found: list[SchemaObject]) -> list[SchemaObject]:
    return [made for made in set(found) if found.count(made) > 1]
