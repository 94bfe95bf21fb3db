"""The objects that the steps make in a SQLite file, by version, and those that they did not.

A view, a trigger, a default, a CHECK or an indexed expression is code: whoever plants one in a
backup runs it here. So a file is only asked which objects it has, until all of them are known.
"""

import sqlite3
from contextlib import closing
from functools import cache

from storage.versions import statements, steps

# An object as SQLite keeps it: type, name, table, and the statement that made it.
SchemaObject = tuple[str, str, str, str | None]
_ALL = "SELECT type, name, tbl_name, sql FROM sqlite_master"


def objects_in(db: sqlite3.Connection) -> list[SchemaObject]:
    """Every object of a database, sorted. Reading this runs nothing of it."""
    db.execute("PRAGMA trusted_schema = OFF")
    return sorted(db.execute(_ALL).fetchall(), key=repr)


@cache
def objects_by_version() -> list[list[SchemaObject]]:
    """The objects of a database of each version, the first one first."""
    found = []
    with closing(sqlite3.connect(":memory:")) as db:
        for step in steps():
            for statement in statements(step, is_server=False):
                db.execute(statement)
            found.append(objects_in(db))
    return found


def planted(found: list[SchemaObject]) -> list[str]:
    """The objects that no step made, in words; none when all are of one version.

    Compares with the nearest version, and also says what of that is missing.
    """
    strange = min(
        ([*(set(found) ^ set(made)), *_doubled(found)] for made in objects_by_version()), key=len
    )
    return sorted({f"{kind} {name}" for kind, name, _, _ in strange})


def _doubled(found: list[SchemaObject]) -> list[SchemaObject]:
    return [made for made in set(found) if found.count(made) > 1]
