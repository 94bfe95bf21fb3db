"""The database that a restore replaces: what it knows, newer than the backup, is not lost."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from btcpay.values.errors import CommandError
from storage.backup.sqlite_file import MOVE_AWAY, network_of, new_file, publish, read_only


def network_in(place: sqlite3.Connection) -> str | None:
    """The network that a database belongs to; None when it is empty or does not say."""
    try:
        return network_of(place)
    except sqlite3.DatabaseError:
        return None


class Place(NamedTuple):
    """Counters and names of a database's merchants, by account; empty when it cannot tell."""

    counters: dict[str, int] = {}
    names: dict[str, str] = {}


def merchants_in(place: sqlite3.Connection) -> Place:
    rows = _rows(place, "SELECT account_key, next_index, name FROM merchant")
    return Place({row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows})


def _rows(place: sqlite3.Connection, query: str) -> list[Any]:
    try:
        return place.execute(query).fetchall()
    except sqlite3.DatabaseError:
        return []


def names_beyond(named: Mapping[str, str], new: Path) -> list[str]:
    """Those of the merchants, by account key, whom the file `new` does not have."""
    with closing(read_only(new)) as db:
        kept = merchants_in(db).names
    return sorted(name for account, name in named.items() if account not in kept)


def keep_newer(place: sqlite3.Connection, new: Path) -> None:
    """Writes into the file `new` the counters that stand further and the keys revoked since.

    An address that the database in place gave out is never given out again, and a leaked key does
    not come back to life. What a damaged or empty database cannot tell is left out.
    """
    counters = [(index, key) for key, index in merchants_in(place).counters.items()]
    ended = _rows(place, "SELECT revoked_at, expires_at, id FROM api_key")
    with closing(sqlite3.connect(new)) as db, db:
        db.executemany(
            "UPDATE merchant SET next_index = max(next_index, ?) WHERE account_key = ?", counters
        )
        db.executemany(
            "UPDATE api_key SET revoked_at = coalesce(revoked_at, ?),"
            " expires_at = coalesce(expires_at, ?) WHERE id = ?",
            ended,
        )


def set_aside(place: sqlite3.Connection, path: Path, stamp: str) -> Path | None:
    """A copy of the database in place, as `path` with a name of its own; None when it is empty.

    Raises CommandError when it is too damaged to be copied.
    """
    if place.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
        return None
    aside, number = path.with_name(f"{path.name}.before-{stamp}"), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.before-{stamp}-{number}")
    with new_file(path, "aside") as part:
        _copy(place, part, path)
        publish(part, aside)
    return aside


def _copy(place: sqlite3.Connection, part: Path, path: Path) -> None:
    try:
        with closing(sqlite3.connect(part)) as copy:
            place.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE").fetchall()
    except sqlite3.Error as error:
        raise CommandError(
            f"nothing was replaced, {path} cannot be set aside ({error}): {MOVE_AWAY.format(path)}"
        ) from None
