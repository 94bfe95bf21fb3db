"""Lists page by page, both ways, by time and place: as fast at their end as at their start.

A page stands behind a row that is named by its time (`at`) and its place in that time (`place`).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, TypeVar, Unpack

from peewee import ColumnBase, Select, Tuple

from storage.database import Database, Values
from storage.statement import Shaped, Typed, same, shaped, slot

Q = TypeVar("Q", bound=Select)


class Place(NamedTuple):
    at: int
    place: int


class Placed(Protocol):
    created_ms: int
    seq: int


P = TypeVar("P", bound=Placed)
FIRST = Place(2**62, 2**62)  # behind it is the newest row of all
_NAMED = Tuple(slot("at"), slot("place"))
OLDEST = -(2**63)  # before every time and place that can be stored


def older(query: Q, model: Any) -> Q:
    """The newest of those behind the named row, the newest first."""
    return (
        query.where(_place(model) < _NAMED).order_by(*order(model)).limit(slot("limit"))
    )


def newer(query: Q, model: Any) -> Q:
    """The oldest of those before it, the oldest first."""
    return (
        query.where(_place(model) > _NAMED)
        .order_by(*order(model, False))
        .limit(slot("limit"))
    )


def _place(model: Any) -> Tuple:
    return Tuple(model.created_ms, model.seq)


def pages(
    db: Database,
    query: Typed[P],
    limit: int,
    since: int = OLDEST,
    /,
    **values: Unpack[Values],
) -> Iterator[list[P]]:
    """All rows of a `newer` from that time on, so many at once: a transaction for each page."""
    behind: Values = {**values, "at": since, "place": OLDEST, "limit": limit}
    while rows := db.rows(query, **behind):
        yield rows
        behind |= {"at": rows[-1].created_ms, "place": rows[-1].seq}


def order(model: Any, newest_first: bool = True) -> list[ColumnBase]:
    columns = (model.created_ms, model.seq)
    return [column.desc() if newest_first else column.asc() for column in columns]


def place_of(model: Any) -> Shaped[Place]:
    columns = (model.created_ms.alias("at"), model.seq.alias("place"))
    return shaped(Place, model.select(*columns).where(same(model.id)))
