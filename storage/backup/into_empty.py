"""Copies all rows of a SQLite file into a database without merchants, in one transaction.

The target is SQLite or PostgreSQL, and may be in use.
"""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from peewee import DataError, IntegrityError

from btcpay.values.errors import CommandError
from storage.backup.sqlite_file import read_only
from storage.database import Database, in_one_line
from storage.faults import as_peewee_errors
from storage.queries import merchants

T = TypeVar("T")

SQLITE_MAGIC = b"SQLite format 3\0"  # sqlite.org/fileformat.html, section 1.3
# In order of creation, because rows of later tables refer to those of earlier ones.
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
# AUTOINCREMENT keeps the highest number ever given, even if its row was deleted.
_SERIALS = """SELECT name, seq, (SELECT name FROM pragma_table_info(made.name) WHERE pk = 1)
    FROM sqlite_sequence AS made WHERE seq > 0"""
# Tables whose rows are not copied, since each database has its own.
_NOT_COPIED = {"schema_step", "sqlite_sequence"}


def is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def require_empty(db: Database) -> None:
    """Raises CommandError if the database has a merchant.

    Without a merchant it has no other data either, since all of it belongs to
    merchants.
    """
    if rows := db.rows(merchants.ALL):
        raise CommandError(
            f"the database already has the merchant {rows[0].name!r}: make a new one"
            " (createdb), set BLOCKTILL_DATABASE_URL to it, and run `blocktill migrate`"
        )


def carry_over(source: Path, db: Database, finish: Callable[[], T]) -> T:
    """Copies all rows of the SQLite file `source` into `db`, in one transaction.

    At the end of the transaction `finish` is called, and its result is returned. The
    caller must have checked that both databases have this program's version. Rows are
    streamed, so that any number of them fits into memory. If the process dies, nothing
    is copied. Raises CommandError if `db` has a merchant, if the file cannot be read,
    or if `db` refuses a row.
    """
    try:
        with closing(read_only(source)) as old, db.write():
            our_tables = set(db.connection.get_tables()) - _NOT_COPIED
            tables = [name for (name,) in old.execute(_TABLES) if name in our_tables]
            _prepare(db, tables)
            require_empty(db)
            for table in tables:
                _carry_table(old, db, table)
            for table, last, column in old.execute(_SERIALS).fetchall():
                if table in our_tables:
                    _set_serial(db, table, last, column)
            return finish()
    # PostgreSQL takes no NUL in a text, and its driver refuses it.
    except (sqlite3.Error, DataError, IntegrityError) as error:
        reason = in_one_line(error)
        raise CommandError(f"nothing was carried over: {reason}") from None


def _prepare(db: Database, tables: Sequence[str]) -> None:
    """Makes the transaction ready for the rows: locks tables, defers foreign keys."""
    if db.is_server:
        # Prevents others from reading a partial copy or adding a merchant.
        db.connection.execute_sql(
            f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE"
        )
    else:
        # A row may refer to a later row of its own table.
        db.connection.execute_sql("PRAGMA defer_foreign_keys = ON")


def _carry_table(old: sqlite3.Connection, db: Database, table: str) -> None:
    """Copies all rows of one table."""
    # Rows of the new database, such as its network, are replaced by those of the old one.
    db.connection.execute_sql(f"DELETE FROM {table}")  # noqa: S608 - a name that both have
    rows = old.execute(f"SELECT * FROM {table}")  # noqa: S608 - a name that both have
    names = [column[0] for column in rows.description]
    columns = ", ".join(names)
    if not db.is_server:
        places = ", ".join("?" * len(names))
        # sqlite3's errors are not converted: they are about the backup's rows, and their
        # messages are for the person who restores it.
        db.connection.cursor().executemany(
            f"INSERT INTO {table} ({columns}) VALUES ({places})",  # noqa: S608
            rows,
        )
        return
    # COPY also fills columns that are GENERATED ALWAYS AS IDENTITY.
    into = f"COPY {table} ({columns}) FROM STDIN"
    with as_peewee_errors, db.connection.cursor() as cursor, cursor.copy(into) as copy:
        for row in rows:
            copy.write_row(row)


def _set_serial(db: Database, table: str, last: int, column: str) -> None:
    """Sets the highest number that `column` of the table has ever had."""
    if db.is_server:
        # setval is not rolled back, which does no harm
        set_next = "SELECT setval(pg_get_serial_sequence(%s, %s), %s)"
        db.connection.execute_sql(set_next, (table, column, last))
        return
    of_table = (last, table)
    changed = db.connection.execute_sql(
        "UPDATE sqlite_sequence SET seq = ? WHERE name = ?", of_table
    )
    if not changed.rowcount:
        db.connection.execute_sql(
            "INSERT INTO sqlite_sequence (seq, name) VALUES (?, ?)", of_table
        )
