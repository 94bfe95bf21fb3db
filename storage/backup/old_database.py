"""The database that a restore replaces, and the newer data to keep from it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from btcpay.values.errors import CommandError
from storage.backup.sqlite_file import MOVE_AWAY, NETWORK, copy_all, new_file, publish
from storage.versions import MARK, version_in


class OldDatabase(NamedTuple):
    """The contents of a database that will be replaced.

    A field is None or empty if the database has no such table or is damaged.
    `version`: the number of the schema's steps (migrations) that were run in it.
    `counters`: the next address index of each merchant, by account key.
    `names`: the name of each merchant, by account key.
    """

    network: str | None = None
    version: int | None = None
    counters: dict[str, int] = {}
    names: dict[str, str] = {}


def read_old(old: sqlite3.Connection) -> OldDatabase:
    """Returns as much as can be read from the database that will be replaced."""
    network = None
    for (value,) in _rows(old, NETWORK):  # one row, or none
        network = value
    version = None
    for mark in _rows(old, MARK):  # one row, or none
        version = version_in(mark)
    counters = {}
    names = {}
    rows = _rows(old, "SELECT account_key, next_index, name FROM merchant")
    for account_key, next_index, name in rows:
        counters[account_key] = next_index
        names[account_key] = name
    return OldDatabase(network, version, counters, names)


def _rows(old: sqlite3.Connection, query: str) -> list[Any]:
    """Returns the rows of the query; [] if the table is missing or damaged."""
    try:
        return old.execute(query).fetchall()
    except sqlite3.DatabaseError:
        return []


def keep_newer(old: sqlite3.Connection, new: Path) -> None:
    """Copies higher address counters and newer key revocations of `old` into `new`.

    Without this, the restored database could give out an address twice, and a revoked
    API key would work again. Values that cannot be read from a damaged database are
    skipped.
    """
    counters = [(index, key) for key, index in read_old(old).counters.items()]
    key_ends = _rows(old, "SELECT revoked_ms, expires_ms, id FROM api_key")
    with closing(sqlite3.connect(new)) as db, db:
        db.executemany(
            "UPDATE merchant SET next_index = max(next_index, ?) WHERE account_key = ?",
            counters,
        )
        db.executemany(
            "UPDATE api_key SET revoked_ms = coalesce(revoked_ms, ?),"
            " expires_ms = coalesce(expires_ms, ?) WHERE id = ?",
            key_ends,
        )


def set_aside(old: sqlite3.Connection, path: Path, stamp: str) -> Path | None:
    """Copies the database to a file beside its own, and returns the path of the copy.

    `old` is a connection to the database, and `path` is its file. `stamp` becomes part
    of the copy's name. Returns None if the database is empty. Raises CommandError if it
    is too damaged to be copied.
    """
    (object_count,) = old.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if object_count == 0:
        return None
    aside = path.with_name(f"{path.name}.before-{stamp}")
    with new_file(path, "aside") as part:
        try:
            copy_all(old, part)
        except sqlite3.Error as error:
            raise CommandError(
                f"nothing was replaced, {path} cannot be set aside ({error}):"
                f" {MOVE_AWAY.format(path)}"
            ) from None
        publish(part, aside)
    return aside
