"""From a SQLite file to a server: all rows of all tables, in one transaction."""

import sqlite3
from contextlib import closing
from pathlib import Path

from btcpay.values.errors import CommandError
from storage.backup.sqlite_file import read_only
from storage.database import Database
from storage.faults import as_peewee_errors
from storage.queries import merchants

SQLITE_MAGIC = b"SQLite format 3\0"  # sqlite.org/fileformat.html, section 1.3
# In this order, since the rows of later tables refer to those of earlier ones.
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
# AUTOINCREMENT remembers the highest number ever given, also that of a deleted row.
_SERIALS = """SELECT name, seq, (SELECT name FROM pragma_table_info(made.name) WHERE pk = 1)
    FROM sqlite_sequence AS made WHERE seq > 0"""


def is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def require_empty(db: Database) -> None:
    """Raises CommandError when there is a merchant: without one there are no other rows."""
    if rows := db.rows(merchants.ALL):
        raise CommandError(
            f"the database already has the merchant {rows[0].name!r}: make a new one"
            " (createdb), set BLOCKTILL_DATABASE_URL to it, and run `blocktill migrate`"
        )


def carry_over(source: Path, db: Database) -> None:
    """Copies everything in the file `source` into a server's database that has no merchants.

    Both have this version. Rows are copied one after another, so their number does not matter;
    a process that dies here has copied nothing. Raises CommandError.
    """
    try:
        with closing(read_only(source)) as old, db.write():
            known = set(db.connection.get_tables()) - {"schema_step"}
            tables = [name for (name,) in old.execute(_TABLES) if name in known]
            # Nobody else reads half of it, or adds a merchant meanwhile.
            db.connection.execute_sql(
                f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE"
            )
            require_empty(db)
            for table in tables:
                _carry_table(old, db, table)
            for table, last, column in old.execute(_SERIALS).fetchall():
                # the next number follows; this is not undone, and does no harm
                if table in known:
                    set_next = "SELECT setval(pg_get_serial_sequence(%s, %s), %s)"
                    db.connection.execute_sql(set_next, (table, column, last))
    except sqlite3.Error as error:
        raise CommandError(f"nothing was carried over: {error}") from None


def _carry_table(old: sqlite3.Connection, db: Database, table: str) -> None:
    # Facts about the new database, such as its network, give way to those of the old one.
    db.connection.execute_sql(f"DELETE FROM {table}")  # noqa: S608 - a name that both have
    rows = old.execute(f"SELECT * FROM {table}")  # noqa: S608 - as above
    columns = ", ".join(column[0] for column in rows.description)
    # COPY takes numbers that the server would otherwise insist on giving itself.
    into = f"COPY {table} ({columns}) FROM STDIN"
    with as_peewee_errors, db.connection.cursor() as cursor, cursor.copy(into) as copy:
        for row in rows:
            copy.write_row(row)
