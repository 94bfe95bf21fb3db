"""One page of a long list, by the row that it begins behind: as fast at its end as at its start."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from btcpay.values.ids import is_id
from storage.database import Database, Values
from storage.queries.lists import keyset
from storage.queries.lists.keyset import FIRST
from storage.statement import Typed

SIZE = 25  # rows of a page
MORE = SIZE + 1  # one more says whether there is another page


class Named(Protocol):
    """A row of any list."""

    id: str
    created_at: int


@dataclass(frozen=True)
class Listing:
    """The queries of one list: both ways, and the place of a row; `values` fill their slots.

    `prefix`: of the ids of its rows.
    """

    prefix: str
    older: Typed[Named]
    newer: Typed[Named]
    place: Typed[keyset.Place]
    values: Values

    def page(self, db: Database, query: Mapping[str, str]) -> "ListPage":
        """What `?older=ID` or `?newer=ID` asks for, else the newest. At most three statements."""
        if behind := self.place_of(db, query.get("newer", "")):
            rows = db.rows(self.newer, **self.behind(behind))
            if len(rows) >= SIZE:  # fewer: then it is the first page, and a whole one
                return _page(rows[:SIZE][::-1], len(rows) > SIZE, True)
        behind = self.place_of(db, query.get("older", ""))
        rows = db.rows(self.older, **self.behind(behind or FIRST))
        return _page(rows[:SIZE], behind is not None, len(rows) > SIZE)

    def behind(self, place: keyset.Place, limit: int = MORE) -> Values:
        return {**self.values, "at": place.at, "place": place.place, "limit": limit}

    def place_of(self, db: Database, id: str) -> keyset.Place | None:
        """The time of one of the merchant's own rows, and its place in that time."""
        return db.row(self.place, **self.values | {"id": id}) if is_id(self.prefix, id) else None


class ListPage(NamedTuple):
    """The rows, the newest first; the ids for `?newer=` and `?older=`, None where none are."""

    rows: list[Named]
    newer: str | None
    older: str | None


def _page(rows: list[Named], has_newer: bool, has_older: bool) -> ListPage:
    newer = rows[0].id if rows and has_newer else None
    return ListPage(rows, newer, rows[-1].id if rows and has_older else None)
