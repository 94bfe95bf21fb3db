"""Statements: queries built from the models, compiled once, with a slot for each value."""

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
    """A query whose rows have a type: a SELECT of one model, or one that `shaped` has typed.

    For mypy a row is its model or shape, so that a mistyped column is an error. At run time it is
    a named tuple of the columns that were selected: one takes a sixth of a microsecond, a dict 1.5,
    and a model's instance 8. An instance would also answer None for a column that was not selected.
    """

    def __iter__(self) -> Iterator[T_co]: ...

    def sql(self) -> Any: ...


class Shaped(Select, Generic[T]):
    """The type that mypy gives a query that `shaped` has typed; none is ever made."""

    shape: type[T]

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError


def shaped(shape: type[T], query: Query) -> Shaped[T]:
    """The query, for mypy with rows of this shape; so are the queries that are made from it.

    A shape is a NamedTuple, a model, a model's subclass with more columns as annotations, or
    `tuple[...]` where a class would say no more; the row has the names that the query selects.
    """
    typed = cast(Shaped[T], query.clone())
    typed.shape = shape
    return typed


def blank(model: type[M], **values: Unpack[Values]) -> M:
    """A row that is in no table: each column is None except for these values."""
    names = [field.name for field in model._meta.sorted_fields]
    empty = _maker(names)([None] * len(names))
    return changed(cast(M, empty), **values)


def as_dict(row: object) -> dict[str, Any]:
    """The row's columns by name, for exports and for adding computed values."""
    return cast(dict[str, Any], cast(Any, row)._asdict())


def changed(row: T, **values: Unpack[Values]) -> T:
    """The row with these values in place of its own."""
    return cast(T, cast(Any, row)._replace(**values))


class Slot(str):
    """The name of a place in a compiled statement, which a value fills at each run."""


class _InQuery(Value):
    def __sql__(self, ctx: Any) -> Any:
        if ctx.state.each:  # storage/at_once.py
            return ctx.literal(f'given."{self.value}"')
        return ctx.value(self.value, self.converter)


def slot(name: str) -> Value:
    return _InQuery(Slot(name), converter=False)


def slots(*fields: Field) -> dict[Field, Value]:
    """Each field with a slot of its own name: the values of an INSERT or UPDATE."""
    return {field: slot(field.name) for field in fields}


def same(*fields: Field) -> Expression:
    """True where each field has the value in the slot of its own name."""
    return reduce(and_, (field == slot(field.name) for field in fields))


def every(model: type[Model]) -> dict[Field, Value]:
    """The values of an INSERT of this model; the database itself gives `seq`."""
    return slots(*(field for field in model._meta.sorted_fields if field.name != "seq"))


def needed(model: type[Model]) -> dict[Field, Value]:
    """The values that an INSERT must give a row: every column that may not be NULL."""
    return slots(*(field for field in every(model) if not field.null))


def counted(query: Any, most: int) -> Select:
    """A SELECT of the number of rows, at most so many: no more are read."""
    return Select([query.limit(most).alias("counted")], [fn.COUNT(SQL("*"))])


def _maker(names: Sequence[str]) -> Callable[[Any], Any]:
    """The function that makes a row of a tuple: a named tuple's `_make`."""
    made: Callable[[Any], Any] = namedtuple("Row", names, rename=True)._make  # type: ignore[attr-defined]
    return made


class Statement:
    """A query's SQL for one database; `arguments` puts the values into their slots."""

    def __init__(self, connection: Any, query: Query) -> None:
        self.query = query  # kept, so that its id stays its own
        if isinstance(query, Select) and not connection.for_update:
            query = query.for_update(False)  # SQLite locks the whole file instead
        self.sql, self.parameters = connection.get_sql_context().sql(query).query()
        self.row: Callable[[Any], Any] | None = None

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        """The parameters in order; a missing value is a KeyError, before anything runs."""
        return [values[p] if isinstance(p, Slot) else p for p in self.parameters]

    def made(self, cursor: Any) -> list[Any]:
        """All rows of the cursor, as named tuples."""
        if self.row is None:
            self.row = _maker([column[0] for column in cursor.description])
        return list(map(self.row, cursor.fetchall()))
