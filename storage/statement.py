"""Statements: queries built from the models, compiled once, with a slot for each value."""

from typing import Any

from peewee import Field, Model, Query, Select, Value


class Slot:
    """A place in a compiled statement that a value of this name fills at each run."""

    def __init__(self, name: str) -> None:
        self.name = name


def slot(name: str) -> Value:
    return Value(Slot(name), converter=False)


def slots(*fields: Field) -> dict[Field, Value]:
    """Each field with a slot of its own name: the values of an INSERT or UPDATE."""
    return {field: slot(field.name) for field in fields}


def every(model: type[Model]) -> dict[Field, Value]:
    """All that an INSERT gives a row of this model; its `seq` is the database's to give."""
    return slots(*(field for field in model._meta.sorted_fields if field.name != "seq"))


def needed(model: type[Model]) -> dict[Field, Value]:
    """What an INSERT must give a row of this model: every column that may not be NULL."""
    return slots(*(field for field in every(model) if not field.null))


class Statement:
    """A query's SQL for one database; `arguments` puts the values into their slots."""

    def __init__(self, connection: Any, query: Query) -> None:
        self.query = query  # kept, so that its id stays its own
        if isinstance(query, Select) and not connection.for_update:
            query = query.for_update(False)  # SQLite: the transaction has locked all there is
        self.sql, self.parameters = connection.get_sql_context().sql(query).query()
        self.columns: tuple[str, ...] = ()

    def arguments(self, values: dict[str, Any]) -> list[Any]:
        """The parameters in order; a missing value is a KeyError, before anything runs."""
        return [values[p.name] if isinstance(p, Slot) else p for p in self.parameters]
