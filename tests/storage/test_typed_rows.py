"""Every query is typed: its rows have the columns that mypy reads."""

from inspect import get_annotations
from typing import get_args

import pytest
from peewee import Field, Model, Select

from btcpay import hooks
from tests.support.databases import QUERIES


def names_of(query):
    """The names that it selects; None for a nameless column, as in a part of another query."""
    columns = (
        query._returning if not isinstance(query, Select) else query.selected_columns
    )
    return [
        each.name if isinstance(each, Field) else vars(each).get("_alias")
        for each in columns or ()
    ]


ROWS = {
    key: query
    for key, query in QUERIES.items()
    if getattr(query, "shape", None)
    or (any(names_of(query)) and not query.__dict__.get("_alias"))
}


# What parts add to rows of the merchant's pages; `sale_column` and `inbox_column` name them.
OF_PARTS = {f"{part}_{what}" for part in hooks.parts() for what in ("state", "waiting")}


def declared(shape):
    """The columns that each row must have, and those that a row may have."""
    if not issubclass(shape, Model):
        return set(shape._fields), set(shape._fields)
    annotated = {name for each in shape.__mro__ for name in get_annotations(each)}
    return set(), annotated | set(shape._meta.fields)


@pytest.mark.parametrize("key", ROWS)
def test_a_query_selects_what_mypy_takes_its_rows_to_have(key):
    query = ROWS[key]
    names = names_of(query)
    shape = getattr(query, "shape", None) or query.model
    if getattr(shape, "__origin__", None) is tuple:
        assert len(names) == len(get_args(shape))
        return
    must, may = declared(shape)
    assert len(names) == len(set(names)), "of two columns of one name the first is read"
    assert must <= set(names) <= may | OF_PARTS
