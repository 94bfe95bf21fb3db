"""The place of bills in the merchant's pages: an entry of the menu, lines of Today and Month."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from btcpay.bills import queries
from btcpay.languages import formats
from btcpay.values.times import to_ms
from btcpay.web.pages.languages import current, gettext
from btcpay.web.pages.visit import Line, Visit
from storage.database import Values, grouped
from storage.models import Bill
from storage.queries.lists.today import MOST_BILLS


def entry() -> dict[str, Any]:
    """`drawn`: the path of an SVG; `new`: the form that makes one."""
    return {
        "path": "/bills",
        "name": gettext("Bills"),
        "drawn": "M5 3h10l4 4v14H5zM15 3v4h4M8 12h8M8 16h5",
        "new": {"path": "/bills/new", "name": gettext("New bill")},
    }


def today(_visit: Visit, shop: Any) -> list[Line]:
    """The numbers of bills that are overdue, and that are due within a week."""
    counts = {"overdue": shop.bills_overdue, "due": shop.bills_due}
    return [_line(kind, number) for kind, number in counts.items() if number]


def month(visit: Visit, since: int, before: int) -> list[Line]:
    """Bills that are due in this time and not paid, with the missing sums by currency."""
    of: Values = {"merchant_id": visit.merchant_id, "since": since, "before": before}
    of["limit"] = MOST_BILLS
    found = grouped(
        visit.service.db.rows(queries.OPEN, **of),
        lambda one: "overdue" if one.due_at < to_ms(visit.now) else "due",
    )
    return [_line(kind, len(bills), f" ({_sums(bills)})") for kind, bills in found.items()]


def _line(kind: str, number: int, sums: str = "") -> Line:
    more = "+" if number == MOST_BILLS else ""
    shown = f"{formats.whole(number, current())}{more}{sums}"
    texts = {
        "overdue": gettext("Overdue bills: %(number)s", number=shown),
        "due": gettext("Bills due: %(number)s", number=shown),
    }
    return texts[kind], "/bills", {"status": kind}


def _sums(bills: Sequence[Bill]) -> str:
    """The missing sums of these bills, one for each currency."""
    missing = {
        code: sum((Decimal(one.amount) - Decimal(one.paid) for one in of), Decimal(0))
        for code, of in grouped(bills, lambda one: one.currency).items()
    }
    return ", ".join(formats.money(sum, code, current()) for code, sum in missing.items())
