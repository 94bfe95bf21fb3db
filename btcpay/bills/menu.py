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
from storage.queries.lists.today import MOST_BILLS

PATH, DAY = "/bills", timedelta(days=1)
MOST = MOST_BILLS  # that are counted


class Line(NamedTuple):
    """A sentence, and the page that it leads to."""

    text: str
    path: str
    query: dict[str, str]


def entry() -> dict[str, Any]:
    """`drawn`: the path of an SVG; `new`: the form that makes one."""
    return {
        "path": PATH,
        "name": gettext("Bills"),
        "drawn": "M5 3h10l4 4v14H5zM15 3v4h4M8 12h8M8 16h5",
        "new": {"path": "/bills/new", "name": gettext("New bill")},
    }


def today(_visit: Any, shop: Any) -> list[Line]:
    """The numbers of bills that are overdue, and that are due within a week."""
    counts = {"overdue": shop.bills_overdue, "due": shop.bills_due}
    return [
        Line(f"{_names()[kind]}: {_count(n)}", PATH, {"status": kind})
        for kind, n in counts.items()
        if n
    ]


def month(visit: Any, first: date, last: date) -> list[Line]:
    """Bills that are due on these days and not paid, with the missing sums by currency."""
    begin, before = (start_of(number_of(day), visit.zone) for day in (first, last + DAY))
    of: Values = {"merchant_id": visit.merchant_id, "since": begin, "before": before, "limit": MOST}
    found = grouped(
        visit.service.db.rows(queries.OPEN, **of),
        lambda one: "overdue" if one.due_at < to_ms(visit.now) else "due",
    )
    return [
        Line(f"{_names()[kind]}: {_count(len(of))} ({_sums(of)})", PATH, {"status": kind})
        for kind, of in found.items()
    ]


def _names() -> dict[str, str]:
    return {"overdue": gettext("Overdue bills"), "due": gettext("Bills due")}


def _count(number: int) -> str:
    return formats.whole(number, current()) + ("+" if number == MOST else "")


def _sums(bills: Sequence[Bill]) -> str:
    """The missing sums of these bills, one for each currency."""
    missing = {
        code: sum((Decimal(one.amount) - Decimal(one.paid) for one in of), Decimal(0))
        for code, of in grouped(bills, lambda one: one.currency).items()
    }
    return ", ".join(formats.money(sum, code, current()) for code, sum in missing.items())
