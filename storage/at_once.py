"""Runs one query for many sets of values.

PostgreSQL gets a single statement with the values as arrays, so that there is only one
network round trip. SQLite runs the query once for each set.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, get_args

from peewee import SQL, Delete, Insert, Query, Select

from storage.database import Database
from storage.faults import as_peewee_errors
from storage.statement import Slot, Statement, Typed
from storage.values import Values

T = TypeVar("T")


class _OfMany(Statement):
    """A PostgreSQL statement that takes its parameters from the columns of a table, `given`."""

    def __init__(self, connection: Any, query: Query) -> None:
        super().__init__(connection, query)
        params = [each for each in self.parameters if isinstance(each, Slot)]
        self.names = list(dict.fromkeys(params))  # each once, in order
        context = connection.get_sql_context(each=True)
        sql, self.parameters = context.sql(_from_given(query)).query()
        if isinstance(query, Delete):  # peewee cannot write USING
            sql = sql.replace(" WHERE ", " USING given WHERE ", 1)
        self.sql = f"{_table_given(self.names)} {sql}"

    def arguments(self, values_list: Any) -> list[Any]:
        """Returns one list for each column of `values_list`, then the other parameters."""
        arguments: list[Any] = []
        for name in self.names:
            column = [values[name] for values in values_list]
            arguments.append(column)
        arguments += self.parameters
        return arguments


def _table_given(names: Sequence[str]) -> str:
    """Returns the SQL that makes the table `given` from one array for each name."""
    columns = ", ".join(f'"{name}"' for name in names)
    arrays = ", ".join(f"%s::{_type_of(name)}[]" for name in names)
    return f"WITH given ({columns}) AS (SELECT * FROM unnest({arrays}))"  # noqa: S608 - no user input


def rows(db: Database, query: Typed[T], values_list: Iterable[Values]) -> list[T]:
    """Returns the rows of a SELECT or of a RETURNING clause, for all sets of values.

    The rows of one set are in the query's order. The query must have no LIMIT, because
    on PostgreSQL it would apply to the rows of all sets together.
    """
    all_values = list(values_list)
    if _is_one_by_one(db, all_values):
        all_rows: list[T] = []
        for values in all_values:
            all_rows += db.rows(query, **values)
        return all_rows
    with db.borrow_connection(), as_peewee_errors:
        statement, cursor = db.execute(query, all_values, _OfMany)
        return statement.rows_of(cursor)


def run(db: Database, query: Query, values_list: Iterable[Values]) -> int:
    """Runs the query for each set of values, and returns the total number of changed rows.

    No two sets may refer to the same row.
    """
    all_values = list(values_list)
    if _is_one_by_one(db, all_values):
        row_count = 0
        for values in all_values:
            row_count += db.run(query, **values)
        return row_count
    with db.borrow_connection(), as_peewee_errors:
        _, cursor = db.execute(query, all_values, _OfMany)
        return int(cursor.rowcount)


def queue(db: Database, query: Query, values_list: Iterable[Values]) -> None:
    """Runs the query for each set of values, and returns nothing.

    If there is only one set, `Database.queue` runs the query, which may save a network
    round trip.
    """
    all_values = list(values_list)
    if len(all_values) == 1:
        db.queue(query, **all_values[0])
    else:
        run(db, query, all_values)


def _is_one_by_one(db: Database, values_list: Sequence[Values]) -> bool:
    return not db.is_server or len(values_list) < 2


def _from_given(query: Any) -> Any:
    """Returns the query with the table `given` in its FROM clause, or as its rows to insert.

    A DELETE is returned unchanged.
    """
    if isinstance(query, Delete):
        return query
    if not isinstance(query, Insert):
        tables = getattr(query, "_from_list", None) or ()
        return query.from_(*tables, SQL("given"))
    insert: Any = query.clone()
    columns = insert._insert
    insert._columns = tuple(columns)
    insert._insert = Select([SQL("given")], tuple(columns.values()))
    return insert


def _type_of(name: str) -> str:
    """Returns the parameter's PostgreSQL type; TEXT if it takes both texts and numbers."""
    hint = Values.__annotations__[name]
    types = get_args(hint) or (hint,)
    if str in types:
        return "TEXT"
    if int in types:
        return "BIGINT"
    return "BYTEA"
