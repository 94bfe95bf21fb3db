"""One page of a long list, found by the row before it: as fast at its end as at its start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from btcpay.values.ids import is_id
from storage.database import Database, Values
from storage.queries.lists import keyset
from storage.queries.lists.keyset import FIRST
from storage.statement import Typed

SIZE = 25  # rows of a page
MORE = SIZE + 1  # one more row tells if there is another page


class ListRow(Protocol):
    id: str
    created_ms: int


@dataclass(frozen=True)
class Listing:
    """The queries of one list, and of a row's place in it; `values` are their parameters.

    `prefix`: the first letters of its rows' ids, such as "inv".
    """

    prefix: str
    older: Typed[ListRow]
    place: Typed[keyset.Place]
    values: Values

    def page(
        self, db: Database, query: Mapping[str, str], before_ms: int | None = None
    ) -> "ListPage":
        """The rows after the one of `?older=ID`, or those before that time, or the newest.

        It takes at most two statements.
        """
        place = self.place_of(db, query.get("older", ""))
        if place is None and before_ms is not None:
            place = keyset.Place(before_ms, keyset.OLDEST)
        rows = db.rows(self.older, **self.values_after(place or FIRST))
        older = None
        if len(rows) > SIZE:
            older = rows[SIZE - 1].id
        return ListPage(rows[:SIZE], is_first=place is None, older=older)

    def values_after(self, place: keyset.Place, limit: int = MORE) -> Values:
        """The parameters of the query for the rows after that place."""
        return {**self.values, "at": place.at, "place": place.place, "limit": limit}

    def place_of(self, db: Database, id: str) -> keyset.Place | None:
        """The place of the merchant's row with this id; None if there is no such row."""
        if is_id(self.prefix, id):
            return db.row(self.place, **self.values | {"id": id})
        return None


class ListPage(NamedTuple):
    """The rows, the newest first.

    `older`: the id for the next page's `?older=`; None on the last page. `until_at`: when the last
    row was made that a search in texts has read; the search goes on after `older`. `named`: the
    rows were found by their name.
    """

    rows: Sequence[ListRow]
    is_first: bool = True
    older: str | None = None
    until_ms: int | None = None
    named: bool = False
