"""Queries built from the models, and the statements compiled from them.

A query has a parameter (`param`) for each value, and is compiled only once.
"""

from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any, Generic, Protocol, TypeVar, Unpack, cast

from peewee import SQL, Expression, Field, Model, Query, Select, Value, fn

from storage.values import Values

T = TypeVar("T")
M = TypeVar("M", bound=Model)
T_co = TypeVar("T_co", covariant=True)


class Typed(Protocol[T_co]):
    """A query whose row type mypy knows: a SELECT of one model, or a query from `rows_as`.

    For mypy a row is an instance of the model or shape, so that a misspelled column is
    an error. At run time a row is a named tuple of the selected columns, for two
    reasons. A named tuple is fast: it takes a sixth of a microsecond, a dict 1.5 and a
    model instance 8. And reading a column that was not selected is an error; a model
    instance would return None.
    """

    def __iter__(self) -> Iterator[T_co]: ...

    def sql(self) -> Any: ...


class TypedSelect(Select, Generic[T]):
    """The type that mypy sees for a query from `rows_as`. It is never instantiated."""

    shape: type[T]

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError


def rows_as(shape: type[T], query: Query) -> TypedSelect[T]:
    """Returns a copy of the query for which mypy takes `shape` as the type of a row.

    Queries derived from the copy have the same row type. A shape is a NamedTuple, a
    model, a subclass of a model that annotates more columns, or `tuple[...]`. At run
    time the row's fields have the names of the selected columns.
    """
    copy = cast(TypedSelect[T], query.clone())
    copy.shape = shape
    return copy


def blank(model: type[M], **values: Unpack[Values]) -> M:
    """Returns a row of the model that is not stored.

    Its columns have the `values`; those without a value are None.
    """
    names = [field.name for field in model._meta.sorted_fields]
    make_row = _row_maker(names)
    empty_row = cast(M, make_row([None] * len(names)))
    return replace(empty_row, **values)


def as_dict(row: object) -> dict[str, Any]:
    """Returns the row's columns by name, for exports and for adding computed values."""
    return cast(dict[str, Any], cast(Any, row)._asdict())


def replace(row: T, **values: Unpack[Values]) -> T:
    """Returns a copy of the row with these values replaced."""
    return cast(T, cast(Any, row)._replace(**values))


class Slot(str):
    """The name of a parameter of a compiled statement.

    Each execution of the statement has a value for the parameter.
    """


class _InQuery(Value):
    """A parameter's value as peewee sees it: its name, which is a Slot."""

    def __sql__(self, ctx: Any) -> Any:
        if ctx.state.each:  # in a statement of storage/at_once.py
            return ctx.literal(f'given."{self.value}"')
        return ctx.value(self.value, self.converter)


def param(name: str) -> Value:
    """Returns a parameter for a query. The query gets its value when it is run."""
    return _InQuery(Slot(name), converter=False)


def params(*fields: Field) -> dict[Field, Value]:
    """Returns each field with a parameter of its name, as values of INSERT or UPDATE."""
    return {field: param(field.name) for field in fields}


def eq(*fields: Field) -> Expression:
    """Returns the condition that each field equals the parameter of its name."""
    return reduce(and_, (field == param(field.name) for field in fields))


def all_columns(model: type[Model]) -> dict[Field, Value]:
    """Returns a parameter for each column except `seq`, for an INSERT.

    The database itself numbers `seq`.
    """
    return params(
        *(field for field in model._meta.sorted_fields if field.name != "seq")
    )


def required_columns(model: type[Model]) -> dict[Field, Value]:
    """Returns a parameter for each NOT NULL column except `seq`, for an INSERT."""
    return params(*(field for field in all_columns(model) if not field.null))


def count_of(query: Any, most: int) -> Select:
    """Returns a SELECT that counts the query's rows, and stops counting at `most`."""
    return Select([query.limit(most).alias("counted")], [fn.COUNT(SQL("*"))])


def _row_maker(names: Sequence[str]) -> Callable[[Any], Any]:
    """Returns the function that makes a row from a tuple: a named tuple's `_make`."""
    make: Callable[[Any], Any] = namedtuple("Row", names, rename=True)._make  # type: ignore[attr-defined]
    return make


class Statement:
    """A query compiled to SQL for one kind of database."""

    def __init__(self, connection: Any, query: Query) -> None:
        self.query = query  # keeps the query alive, so that its id is not reused
        if isinstance(query, Select) and not connection.for_update:
            query = query.for_update(False)  # SQLite locks the whole file instead
        self.sql, self.parameters = connection.get_sql_context().sql(query).query()
        # known after the first run, which tells the names of the columns
        self._make_row: Callable[[Any], Any] | None = None

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        """Returns the SQL parameters in order. Raises KeyError if one has no value."""
        arguments = []
        for argument in self.parameters:
            if isinstance(argument, Slot):
                argument = values[argument]
            arguments.append(argument)
        return arguments

    def rows_of(self, cursor: Any) -> list[Any]:
        """Returns all rows of the cursor, as named tuples."""
        if self._make_row is None:
            names = [column[0] for column in cursor.description]  # PEP 249
            self._make_row = _row_maker(names)
        return list(map(self._make_row, cursor.fetchall()))
