"""Lists page by page, both ways, by time and place: as fast at their end as at their start.

A page stands behind a row that is named by its time (`at`) and its place in that time (`place`).
"""

from collections.abc import Iterator
from typing import Any

from peewee import ColumnBase, Select

from storage.database import Database, Row
from storage.statement import slot

FIRST = {"at": 2**62, "place": 2**62}  # behind it is the newest row of all
OLDEST = -(2**63)  # before every time and place that can be stored


def older(query: Select, model: Any) -> Select:
    """The newest of those behind the named row, the newest first."""
    behind = (model.created_at <= slot("at")) & (
        (model.created_at < slot("at")) | (model.seq < slot("place"))
    )
    return query.where(behind).order_by(*order(model)).limit(slot("limit"))


def newer(query: Select, model: Any) -> Select:
    """The oldest of those before it, the oldest first."""
    before = (model.created_at >= slot("at")) & (
        (model.created_at > slot("at")) | (model.seq > slot("place"))
    )
    return query.where(before).order_by(*order(model, False)).limit(slot("limit"))


def pages(
    db: Database, query: Select, limit: int, since: int = OLDEST, **values: Any
) -> Iterator[list[Row]]:
    """All rows of a `newer` from that time on, so many at once: a transaction for each page."""
    at, place = since, OLDEST
    while rows := db.rows(query, at=at, place=place, limit=limit, **values):
        yield rows
        at, place = rows[-1]["created_at"], rows[-1]["seq"]


def order(model: Any, newest_first: bool = True) -> list[ColumnBase]:
    columns = (model.created_at, model.seq)
    return [column.desc() if newest_first else column.asc() for column in columns]


def place_of(model: Any) -> Select:
    columns = (model.created_at.alias("at"), model.seq.alias("place"))
    return model.select(*columns).where(model.id == slot("id"))
