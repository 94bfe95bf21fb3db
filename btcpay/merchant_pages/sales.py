"""The last sales of the till: how each stands, and the amounts that are sold often."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from btcpay.checkout.snapshot import is_taken_back
from btcpay.merchant_pages.visit import Visit
from btcpay.values.currencies import asked_of, rounded
from storage.queries import invoices
from storage.queries.lists import merchant_lists

LISTED = 10
REMEMBERED = 50  # sales among which an amount that is sold often is found
MOST_SUGGESTED = 4


def last_sales(visit: Visit, shown_id: str = "") -> dict[str, Any]:
    """`listed`: the last ones. `taken_back`: their ids; `alarms`: those that need a human.

    `is_waiting`: whether one is paid but not confirmed, so that it may still be taken back. One
    statement. `shown_id`: of the sale that the page shows itself, which needs no alarm.
    """
    rows = visit.service.db.rows(
        merchant_lists.SALES, merchant_id=visit.merchant_id, limit=REMEMBERED
    )
    listed = rows[:LISTED]
    settings = visit.service.settings
    taken_back = [
        row for row in listed if row.attention == "reorganised" or is_taken_back(settings, row)
    ]
    return {
        "listed": listed,
        "taken_back": {row.id for row in taken_back},
        "alarms": [row for row in taken_back if _is_alarm(row) and row.id != shown_id],
        "is_waiting": any(row.status == "open" and row.covered_at for row in listed),
        "suggested": often_sold(rows, visit.currency),
    }


def _is_alarm(row: invoices.InvoiceWith) -> bool:
    """True until the owner has set the sale aside."""
    return row.status == "open" or row.attention is not None


def often_sold(rows: Sequence[invoices.InvoiceWith], currency: str) -> list[Decimal]:
    """Amounts without tips that were sold at least twice, the smallest first."""
    sold = Counter(
        rounded(asked.amount - Decimal(row.tip or 0), currency)
        for row in rows
        if (asked := asked_of(row)).currency == currency
    )
    often = [amount for amount, times in sold.most_common(MOST_SUGGESTED) if times > 1]
    return sorted(often)
