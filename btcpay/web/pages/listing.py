"""One page of a long list, found by the row before it: as fast at the end as at the start."""

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


class Named(Protocol):
    id: str
    created_at: int


@dataclass(frozen=True)
class Listing:
    """The queries of one list, and of a row's place in it; `values` fill their slots.

    `prefix`: the first letters of its rows' ids, such as "inv".
    """

    prefix: str
    older: Typed[Named]
    place: Typed[keyset.Place]
    values: Values

    def page(
        self, db: Database, query: Mapping[str, str], before_ms: int | None = None
    ) -> "ListPage":
        """The rows behind `?older=ID`, else those before that time, else the newest.

        At most two statements.
        """
        behind = self.place_of(db, query.get("older", ""))
        if behind is None and before_ms is not None:
            behind = keyset.Place(before_ms, keyset.OLDEST)
        rows = db.rows(self.older, **self.behind(behind or FIRST))
        older = rows[SIZE - 1].id if len(rows) > SIZE else None
        return ListPage(rows[:SIZE], behind is None, older)

    def behind(self, place: keyset.Place, limit: int = MORE) -> Values:
        return {**self.values, "at": place.at, "place": place.place, "limit": limit}

    def place_of(self, db: Database, id: str) -> keyset.Place | None:
        """The time of one of the merchant's own rows, and its place in that time."""
        if is_id(self.prefix, id):
            return db.row(self.place, **self.values | {"id": id})
        return None


class ListPage(NamedTuple):
    """The rows, the newest first; the id for `?older=`, None on the last page.

    A search in texts has gone through rows down to the one made `until_at`, and goes on behind
    `older`. `named`: the rows were found by their name.
    """

    rows: Sequence[Named]
    is_first: bool = True
    older: str | None = None
    until_at: int | None = None
    named: bool = False
