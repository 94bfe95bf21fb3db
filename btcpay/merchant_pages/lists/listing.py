"""One page of a long list, by the row that it begins behind: as fast at its end as at its start."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from peewee import Select

from btcpay.values.ids import is_id
from storage.database import Database, Row
from storage.queries.lists.keyset import FIRST

SIZE = 25  # rows of a page
MORE = SIZE + 1  # one more says whether there is another page


@dataclass(frozen=True)
class Listing:
    """The queries of one list: both ways, and the place of a row; `values` fill their slots.

    `prefix`: of the ids of its rows.
    """

    prefix: str
    older: Select
    newer: Select
    place: Select
    values: Mapping[str, Any]

    def page(self, db: Database, query: Mapping[str, str]) -> "ListPage":
        """What `?older=ID` or `?newer=ID` asks for, else the newest. At most three statements."""
        if behind := self.place_of(db, query.get("newer", "")):
            rows = db.rows(self.newer, **self.values, **behind, limit=MORE)
            if len(rows) >= SIZE:  # fewer: then it is the first page, and a whole one
                return ListPage(rows[:SIZE][::-1], len(rows) > SIZE, True)
        behind = self.place_of(db, query.get("older", ""))
        rows = db.rows(self.older, **self.values, **(behind or FIRST), limit=MORE)
        return ListPage(rows[:SIZE], behind is not None, len(rows) > SIZE)

    def place_of(self, db: Database, id: str) -> Row | None:
        """The time of one of the merchant's own rows, and its place in that time."""
        return db.row(self.place, **self.values, id=id) if is_id(self.prefix, id) else None


@dataclass(frozen=True)
class ListPage:
    """The rows, the newest first, and whether there are newer and older ones."""

    rows: list[Row]
    has_newer: bool
    has_older: bool

    @property
    def newer(self) -> str | None:
        """The id for `?newer=`; None where there are none."""
        return self.rows[0]["id"] if self.has_newer and self.rows else None

    @property
    def older(self) -> str | None:
        """The id for `?older=`; None where there are none."""
        return self.rows[-1]["id"] if self.has_older and self.rows else None
