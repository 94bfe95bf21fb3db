"""Compares the schema objects of a SQLite file with those that this program makes."""

import sqlite3
from contextlib import closing
from functools import cache
from typing import NamedTuple

from storage.steps import statements, steps

_ALL = "SELECT type, name, tbl_name, sql FROM sqlite_master"


class SchemaObject(NamedTuple):
    """A schema object as SQLite stores it.

    `sql` is its CREATE statement; None for an index that SQLite made by itself. A view,
    a trigger, a default, a CHECK or an indexed expression is code, which an attacker
    could plant in a backup. So `inspect` of storage/backup/sqlite_file.py compares all
    schema objects of a file before it reads anything else there.
    """

    type: str
    name: str
    table: str
    sql: str | None


def objects_in(db: sqlite3.Connection) -> list[SchemaObject]:
    """Returns all schema objects of a database, sorted, without running code in them."""
    db.execute("PRAGMA trusted_schema = OFF")
    return sorted((SchemaObject(*row) for row in db.execute(_ALL)), key=repr)


@cache
def objects_by_version() -> list[list[SchemaObject]]:
    """Returns a list for each version of the schema, from version 1 on.

    It has the schema objects of a new database of that version.
    """
    versions = []
    with closing(sqlite3.connect(":memory:")) as db:
        for step in steps():
            for statement in statements(step, is_server=False):
                db.execute(statement)
            versions.append(objects_in(db))
    return versions


def foreign_objects(objects: list[SchemaObject]) -> list[str]:
    """Returns the type and name of each schema object that this program would not make.

    `objects` are compared with the objects of the version that differs least. The
    result also has the objects that this version has and `objects` lacks. If all
    objects match, the result is empty.
    """
    # Sets do not show that an object is there twice.
    duplicates = [entry for entry in set(objects) if objects.count(entry) > 1]
    differences_by_version = []
    for ours in objects_by_version():
        differences = set(objects) ^ set(ours)
        differences_by_version.append([*differences, *duplicates])
    fewest_differences = min(differences_by_version, key=len)
    return sorted({f"{entry.type} {entry.name}" for entry in fewest_differences})
