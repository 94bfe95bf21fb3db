"""Keyset pagination: a page of a list starts after a given row.

So the last page of a long list is read as fast as the first one.
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
    """The queries of one list, which is shown in pages.

    `prefix`: the prefix of the rows' ids, such as "inv". `older`: selects the rows
    after a position. `place`: selects the position of the row with a given id.
    `values`: the parameters of both queries.
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
        """Returns the page of the list that the request's query parameters name.

        It begins after the row of `?older=ID`, else before the time `before_ms`, else
        with the newest row. It takes at most two statements.
        """
        place = self.position_of(db, query.get("older", ""))
        if place is None and before_ms is not None:
            place = keyset.Position(before_ms, keyset.OLDEST)
        rows = db.rows(self.older, **self.values_after(place or FIRST))
        older = None
        if len(rows) > SIZE:
            older = rows[SIZE - 1].id
        return ListPage(rows[:SIZE], is_first=place is None, older=older)

    def values_after(self, place: keyset.Position, limit: int = MORE) -> Values:
        """Returns the parameters of the query for the rows after this position."""
        return {**self.values, "at": place.at, "place": place.place, "limit": limit}

    def position_of(self, db: Database, id: str) -> keyset.Position | None:
        """Returns the position of the list's row with this id; None if there is no such row."""
        if is_id(self.prefix, id):
            return db.get_or_none(self.place, **self.values | {"id": id})
        return None


class ListPage(NamedTuple):
    """One page of a list: its rows, the newest first.

    `older`: the value of `?older=` for the next page; None on the last page.

    A search reads only a part of a long list. `until_ms` is then the creation time of
    the last row that it has read, and the search goes on after `older`; else it is
    None. `has_names` is True if it found rows by an id, an address, a txid or a
    reference.
    """

    rows: Sequence[ListRow]
    is_first: bool = True
    older: str | None = None
    until_ms: int | None = None
    has_names: bool = False
