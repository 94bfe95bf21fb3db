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
    """A PostgreSQL statement that runs a query for all rows of a table, `given`.

    The table has a column for each parameter of the query, and a row for each set of
    values.
    """

    def __init__(self, connection: Any, query: Query) -> None:
        # Compiles the query as usual, only to learn the names of its parameters.
        super().__init__(connection, query)
        slots = [item for item in self.parameters if isinstance(item, Slot)]
        self.names = list(dict.fromkeys(slots))  # each once, in order
        # Compiles it again, with columns of `given` in place of the parameters.
        context = connection.get_sql_context(each=True)
        sql, self.parameters = context.sql(_from_given(query)).query()
        if isinstance(query, Delete):  # peewee cannot write USING
            sql = sql.replace(" WHERE ", " USING given WHERE ", 1)
        self.sql = f"{_table_given(self.names)} {sql}"

    def arguments(self, values_list: Any) -> list[Any]:
        """Returns the SQL parameters: a list for each column of `given`, then the others.

        The others are the query's constants.
        """
        arguments: list[Any] = []
        for name in self.names:
            column = [values[name] for values in values_list]
            arguments.append(column)
        arguments += self.parameters
        return arguments


def _table_given(names: Sequence[str]) -> str:
    """Returns the SQL that makes the table `given`, with an array for each column."""
    columns = ", ".join(f'"{name}"' for name in names)
    arrays = ", ".join(f"%s::{_type_of(name)}[]" for name in names)
    return f"WITH given ({columns}) AS (SELECT * FROM unnest({arrays}))"  # noqa: S608 - no user input


def rows(db: Database, query: Typed[T], values_list: Iterable[Values]) -> list[T]:
    """Returns the rows of a SELECT or of a RETURNING clause, for all sets of values.

    The rows of one set are in the query's order. The query must have no LIMIT, because
    on PostgreSQL it would apply to the rows of all sets together.
    """
    all_values = list(values_list)
    if _runs_one_by_one(db, all_values):
        all_rows: list[T] = []
        for values in all_values:
            all_rows += db.rows(query, **values)
        return all_rows
    with db.borrow_connection(), as_peewee_errors:
        statement, cursor = db.execute(query, all_values, kind=_OfMany)
        return statement.rows_of(cursor)


def run(db: Database, query: Query, values_list: Iterable[Values]) -> int:
    """Runs the query for each set of values, and returns the total number of changed rows.

    No two sets may refer to the same row.
    """
    all_values = list(values_list)
    if _runs_one_by_one(db, all_values):
        row_count = 0
        for values in all_values:
            row_count += db.run(query, **values)
        return row_count
    with db.borrow_connection(), as_peewee_errors:
        _, cursor = db.execute(query, all_values, kind=_OfMany)
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


def _runs_one_by_one(db: Database, values_list: Sequence[Values]) -> bool:
    """True if the query is run separately for each set of values."""
    return not db.is_server or len(values_list) < 2


def _from_given(query: Any) -> Any:
    """Returns the query with the table `given` in its FROM clause.

    An INSERT inserts the rows of the table. A DELETE is returned unchanged.
    """
    if isinstance(query, Delete):
        return query
    if isinstance(query, Insert):
        return _insert_from_given(query)
    tables = getattr(query, "_from_list", None) or ()
    return query.from_(*tables, SQL("given"))


def _insert_from_given(query: Insert) -> Any:
    """Returns INSERT ... SELECT ... FROM given in place of INSERT ... VALUES ..."""
    insert: Any = query.clone()
    value_by_column = insert._insert
    insert._columns = tuple(value_by_column)
    insert._insert = Select([SQL("given")], tuple(value_by_column.values()))
    return insert


def _type_of(name: str) -> str:
    """Returns the parameter's PostgreSQL type; TEXT if it takes both texts and numbers."""
    hint = Values.__annotations__[name]
    types = get_args(hint) or (hint,)  # a union has several types, such as str | None
    if str in types:
        return "TEXT"
    if int in types:
        return "BIGINT"
    return "BYTEA"
