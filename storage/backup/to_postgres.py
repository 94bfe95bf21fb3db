"""Copies all rows of a SQLite file to PostgreSQL, in one transaction."""

import sqlite3
from contextlib import closing
from pathlib import Path

from btcpay.values.errors import CommandError
from storage.backup.sqlite_file import read_only
from storage.database import Database
from storage.faults import as_peewee_errors
from storage.queries import merchants

SQLITE_MAGIC = b"SQLite format 3\0"  # sqlite.org/fileformat.html, section 1.3
# In order of creation, because rows of later tables refer to those of earlier ones.
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
# AUTOINCREMENT keeps the highest number ever given, even if its row was deleted.
_SERIALS = """SELECT name, seq, (SELECT name FROM pragma_table_info(made.name) WHERE pk = 1)
    FROM sqlite_sequence AS made WHERE seq > 0"""


def is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def require_empty(db: Database) -> None:
    """Raises CommandError if the database has a merchant.

    All other rows belong to a merchant, so this shows that it is empty.
    """
    if rows := db.rows(merchants.ALL):
        raise CommandError(
            f"the database already has the merchant {rows[0].name!r}: make a new one"
            " (createdb), set BLOCKTILL_DATABASE_URL to it, and run `blocktill migrate`"
        )


def carry_over(source: Path, db: Database) -> None:
    """Copies all rows of the SQLite file `source` to PostgreSQL.

    The PostgreSQL database must have no merchants, and both must have this program's
    version. Rows are streamed, so any number of them fits. If the process dies, nothing
    is copied. Raises CommandError.
    """
    try:
        with closing(read_only(source)) as old, db.write():
            our_tables = set(db.connection.get_tables()) - {"schema_step"}
            tables = [name for (name,) in old.execute(_TABLES) if name in our_tables]
            # Prevents others from reading a partial copy or adding a merchant.
            lock = f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE"
            db.connection.execute_sql(lock)
            require_empty(db)
            for table in tables:
                _carry_table(old, db, table)
            for table, last, column in old.execute(_SERIALS).fetchall():
                # setval is not rolled back, which does no harm
                if table in our_tables:
                    set_next = "SELECT setval(pg_get_serial_sequence(%s, %s), %s)"
                    db.connection.execute_sql(set_next, (table, column, last))
    except sqlite3.Error as error:
        raise CommandError(f"nothing was carried over: {error}") from None


def _carry_table(old: sqlite3.Connection, db: Database, table: str) -> None:
    # Rows of the new database, such as its network, are replaced by those of the old one.
    db.connection.execute_sql(f"DELETE FROM {table}")  # noqa: S608 - a name that both have
    rows = old.execute(f"SELECT * FROM {table}")  # noqa: S608 - as above
    columns = ", ".join(column[0] for column in rows.description)
    # COPY also fills columns that are GENERATED ALWAYS AS IDENTITY.
    into = f"COPY {table} ({columns}) FROM STDIN"
    with as_peewee_errors, db.connection.cursor() as cursor, cursor.copy(into) as copy:
        for row in rows:
            copy.write_row(row)
