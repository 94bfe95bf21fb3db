"""Keyset pagination: shows a long list in pages, each of which starts after a given row.

So the database selects the last page of a long list as fast as the first page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from btcpay.values.ids import is_id
from storage.database import Database, Values
from storage.queries.lists import keyset
from storage.queries.lists.keyset import FIRST
from storage.statement import Typed

SIZE = 25  # rows of a page
MORE = SIZE + 1  # one more row tells whether there is another page


class ListRow(Protocol):
    id: str
    created_ms: int


@dataclass(frozen=True)
class Listing:
    """The queries of one list, which is shown in pages, the newest rows first.

    `prefix` is the prefix of the rows' ids, such as "inv". `older` is the query for the
    rows after a position in the list. `place` is the query for the position of the row
    with a given id. `values` are the parameters of both queries.
    """

    prefix: str
    older: Typed[ListRow]
    place: Typed[keyset.Position]
    values: Values

    def page(
        self,
        db: Database,
        query: Mapping[str, str],
        before_ms: int | None = None,
    ) -> "ListPage":
        """Returns a page of the list, for the query parameters `query` of the request.

        If `query` has `older` with the id of a row, the page begins after that row.
        Otherwise it begins with the newest row that is older than the time `before_ms`,
        or with the newest row of all if `before_ms` is None. This method executes at
        most two SQL statements.
        """
        place = self.position_of(db, query.get("older", ""))
        if place is None and before_ms is not None:
            place = keyset.Position(before_ms, keyset.OLDEST)
        rows = db.rows(self.older, **self.values_after(place or FIRST))
        rows_of_page = rows[:SIZE]
        older = None
        if len(rows) > SIZE:
            older = rows_of_page[-1].id
        return ListPage(rows_of_page, is_first=place is None, older=older)

    def values_after(self, place: keyset.Position, limit: int = MORE) -> Values:
        """Returns the parameters of the query `older` for the rows after this position."""
        return {**self.values, "at": place.at, "place": place.place, "limit": limit}

    def position_of(self, db: Database, id: str) -> keyset.Position | None:
        """Returns the position of the row with this id; None if the list has no such row."""
        if is_id(self.prefix, id):
            return db.get_or_none(self.place, **self.values | {"id": id})
        return None


class ListPage(NamedTuple):
    """One page of a list: its rows, the newest first.

    `is_first` is True for the first page. `older` is the value of `?older=` for the
    next page; None on the last page.

    Two fields are only for searches, of which each request searches only a section of a
    long list:

    - `until_ms` is the creation time of the last row in that section, and the next
      request continues after `older`. It is None if the whole list was searched.
    - `has_names` is True if the search found rows by an id, an address, a txid or a
      reference.
    """

    rows: Sequence[ListRow]
    is_first: bool = True
    older: str | None = None
    until_ms: int | None = None
    has_names: bool = False
