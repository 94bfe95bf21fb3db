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
# AUTOINCREMENT keeps the highest number ever given, even if its row was deleted. The query returns
# each table, this number, and the column that is numbered.
_SERIALS = """SELECT name, seq, (SELECT name FROM pragma_table_info(made.name) WHERE pk = 1)
    FROM sqlite_sequence AS made WHERE seq > 0"""
# Tables whose rows are not copied, since each database has its own.
_NOT_COPIED = {"schema_step", "sqlite_sequence"}


def is_sqlite(path: Path) -> bool:
    """True if the file begins as a SQLite database does."""
    with path.open("rb") as file:
        return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def require_empty(db: Database) -> None:
    """Raises CommandError if the database has a merchant.

    A database without merchants is empty, since all other data belongs to merchants.
    """
    all_merchants = db.rows(merchants.ALL)
    if all_merchants:
        name = all_merchants[0].name
        raise CommandError(
            f"the database already has the merchant {name!r}: make a new one"
            " (createdb), set BLOCKTILL_DATABASE_URL to it, and run `blocktill migrate`"
        )


def carry_over(source: Path, db: Database, finish: Callable[[], T]) -> T:
    """Copies all rows of the SQLite file `source` into `db`, in one transaction.

    At the end of the transaction `finish` is called, and its result is returned. The
    caller must have checked that both databases have this program's version. Rows are
    streamed, so that memory does not limit their number. If the process dies, nothing
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
            for table, highest, column in old.execute(_SERIALS).fetchall():
                if table in our_tables:
                    _set_serial(db, table, column, highest)
            return finish()
    # PostgreSQL takes no NUL in a text, and its driver refuses it.
    except (sqlite3.Error, DataError, IntegrityError) as error:
        reason = in_one_line(error)
        raise CommandError(f"nothing was carried over: {reason}") from None


def _prepare(db: Database, tables: Sequence[str]) -> None:
    """Locks the tables on PostgreSQL; makes SQLite check foreign keys only at the end."""
    if db.is_server:
        # Prevents others from reading a partial copy or adding a merchant.
        names = ", ".join(tables)
        db.connection.execute_sql(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
    else:
        # A row may refer to a later row of its own table.
        db.connection.execute_sql("PRAGMA defer_foreign_keys = ON")


def _carry_table(old: sqlite3.Connection, db: Database, table: str) -> None:
    """Copies all rows of one table."""
    # Rows of the new database, such as its network, are replaced by those of the old one.
    db.connection.execute_sql(f"DELETE FROM {table}")  # noqa: S608 - a name that both have
    rows = old.execute(f"SELECT * FROM {table}")  # noqa: S608 - a name that both have
    columns = [column[0] for column in rows.description]
    if db.is_server:
        _copy_rows(db, table, columns, rows)
    else:
        _insert_rows(db, table, columns, rows)


def _copy_rows(
    db: Database, table: str, columns: Sequence[str], rows: sqlite3.Cursor
) -> None:
    """Writes the rows to PostgreSQL."""
    # COPY also fills columns that are GENERATED ALWAYS AS IDENTITY.
    into = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    with as_peewee_errors, db.connection.cursor() as cursor, cursor.copy(into) as copy:
        for row in rows:
            copy.write_row(row)


def _insert_rows(
    db: Database, table: str, columns: Sequence[str], rows: sqlite3.Cursor
) -> None:
    """Writes the rows to SQLite."""
    placeholders = ", ".join("?" * len(columns))
    # sqlite3's errors are not converted: they are about the backup's rows, and their
    # messages are for the person who restores it.
    db.connection.cursor().executemany(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({placeholders})",  # noqa: S608
        rows,
    )


def _set_serial(db: Database, table: str, column: str, highest: int) -> None:
    """Stores the highest number that `column` of the table has ever had."""
    if db.is_server:
        # setval is not rolled back, which does no harm
        set_highest = "SELECT setval(pg_get_serial_sequence(%s, %s), %s)"
        db.connection.execute_sql(set_highest, (table, column, highest))
        return
    parameters = (highest, table)
    cursor = db.connection.execute_sql(
        "UPDATE sqlite_sequence SET seq = ? WHERE name = ?", parameters
    )
    has_row = cursor.rowcount > 0
    if not has_row:
        db.connection.execute_sql(
            "INSERT INTO sqlite_sequence (seq, name) VALUES (?, ?)", parameters
        )
