"""The place of bills in the merchant's pages: an entry of the menu, lines of Today and Month."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from btcpay.bills import queries
from btcpay.languages import formats
from btcpay.values.times import number_of, start_of, to_ms
from btcpay.web.pages.languages import current, gettext
from storage.database import Values, grouped
from storage.models import Bill

MOST = 100  # bills that are counted
SOON, DAY = timedelta(days=7), timedelta(days=1)


class Line(NamedTuple):
    """A sentence, and the page that it leads to."""

    text: str
    path: str
    query: dict[str, str]


def entry() -> dict[str, Any]:
    """`drawn`: the path of an SVG; `new`: the form that makes one."""
    return {
        "path": "/bills",
        "name": gettext("Bills"),
        "drawn": "M5 3h10l4 4v14H5zM15 3v4h4M8 12h8M8 16h5",
        "new": {"path": "/bills/new", "name": gettext("New bill")},
    }


def today(visit: Any) -> list[Line]:
    """What is overdue, and what is due within a week."""
    return _lines(visit, 0, to_ms(visit.now + SOON))


def month(visit: Any, first: date, last: date) -> list[Line]:
    """What is due on these days and not paid."""
    return _lines(visit, *(start_of(number_of(day), visit.zone) for day in (first, last + DAY)))


def _lines(visit: Any, begin: int, end: int) -> list[Line]:
    own: Values = {"merchant_id": visit.merchant_id, "since": begin, "before": end, "limit": MOST}
    found, now_ms = visit.service.db.rows(queries.OPEN, **own), to_ms(visit.now)
    overdue, due = (
        [one for one in found if (one.due_at < now_ms) == late] for late in (True, False)
    )
    words = ((overdue, gettext("Overdue bills"), "overdue"), (due, gettext("Bills due"), "due"))
    return [
        Line(f"{name}: {_sums(of)}", "/bills", {"status": kind}) for of, name, kind in words if of
    ]


def _sums(bills: Sequence[Bill]) -> str:
    """Their number and what is missing of them, in each currency: `3 (€120.00)`."""
    missing = {
        code: sum((Decimal(one.amount) - Decimal(one.paid) for one in of), Decimal(0))
        for code, of in grouped(bills, lambda one: one.currency).items()
    }
    sums = ", ".join(formats.money(sum, code, current()) for code, sum in missing.items())
    return f"{formats.whole(len(bills), current())}{'+' if len(bills) == MOST else ''} ({sums})"
