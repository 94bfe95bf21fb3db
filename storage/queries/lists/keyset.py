"""Keyset pagination in both directions, as fast on the last page as on the first.

Rows are ordered by their creation time in ms (`at`) and their number `seq` (`place`). A
page starts after the row with the given `at` and `place`, in either direction.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, TypeVar, Unpack

from peewee import ColumnBase, Select, Tuple

from storage.database import Database, Values
from storage.statement import Typed, TypedSelect, eq, param, rows_as

Q = TypeVar("Q", bound=Select)


class Position(NamedTuple):
    """The position of a row in the order of this module: its creation time, and its `seq`."""

    at: int
    place: int


class RowInOrder(Protocol):
    created_ms: int
    seq: int


P = TypeVar("P", bound=RowInOrder)
# Every row is older than this position, so a list that starts here begins with the newest row.
FIRST = Position(2**62, 2**62)
_GIVEN_ROW = Tuple(param("at"), param("place"))
OLDEST = -(2**63)  # less than every time and number that can be stored


def older(query: Q, model: Any) -> Q:
    """Returns the query for a page of at most `limit` rows, newest first.

    The rows are older than the position in the parameters `at` and `place`.
    """
    return (
        query.where(_position(model) < _GIVEN_ROW)
        .order_by(*order(model))
        .limit(param("limit"))
    )


def newer(query: Q, model: Any) -> Q:
    """Returns the query for a page of at most `limit` rows, oldest first.

    The rows are newer than the position in the parameters `at` and `place`.
    """
    return (
        query.where(_position(model) > _GIVEN_ROW)
        .order_by(*order(model, newest_first=False))
        .limit(param("limit"))
    )


def _position(model: Any) -> Tuple:
    """Returns the position of the model's rows, as SQL."""
    return Tuple(model.created_ms, model.seq)


def pages(
    db: Database,
    query: Typed[P],
    limit: int,
    since: int = OLDEST,
    /,
    **values: Unpack[Values],
) -> Iterator[list[P]]:
    """Yields all rows of `query` in pages, oldest first, from the time `since` in ms on.

    `query` is a result of `newer`. A page has at most `limit` rows. Each page is loaded
    only when it is needed, so it may have rows that were added meanwhile.
    """
    parameters: Values = {**values, "at": since, "place": OLDEST, "limit": limit}
    while rows := db.rows(query, **parameters):
        yield rows
        last = rows[-1]  # the next page starts after it
        parameters |= {"at": last.created_ms, "place": last.seq}


def order(model: Any, newest_first: bool = True) -> list[ColumnBase]:
    """Returns the columns to order the model's rows by: the creation time, then `seq`.

    Both are descending if `newest_first` is True, else ascending.
    """
    if newest_first:
        return [model.created_ms.desc(), model.seq.desc()]
    return [model.created_ms.asc(), model.seq.asc()]


def position_query(model: Any) -> TypedSelect[Position]:
    """Returns the query for the position of the row whose id is the parameter `id`."""
    at = model.created_ms.alias("at")
    place = model.seq.alias("place")
    query = model.select(at, place).where(eq(model.id))
    return rows_as(Position, query)
