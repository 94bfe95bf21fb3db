"""The list of the last sales on the till's pages, and the suggested amounts."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from btcpay.checkout.snapshot import is_taken_back
from btcpay.parts.merchant_pages import queries
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.settings.settings import Settings
from btcpay.values.money import amount_due, round_money
from btcpay.values.statuses import InvoiceStatus
from storage.queries import invoices
from storage.values import Values

LISTED = 10
RECENT_SALES = 50  # the last sales, from which frequent amounts are suggested
MOST_SUGGESTED = 4


def last_sales(visit: Visit, shown_id: str = "") -> dict[str, Any]:
    """Returns the template's values for the list of the last sales.

    - `listed`: the rows of the last sales.
    - `taken_back`: the ids of listed sales that have lost a payment: it has vanished, or
      its block has left the best chain.
    - `alarms`: the rows of all unpaid sales that have lost a payment, of any age. The
      sale `shown_id` is left out, since the page itself shows it to a customer.
    - `is_waiting`: True if a listed sale is paid but unconfirmed, so that its payment
      may still vanish.
    - `suggested`: amounts and notes that were sold often (`frequent_sales`).
    - `notes`: the notes of recent sales, sorted.
    """
    db = visit.service.db
    parameters = Values(merchant_id=visit.merchant_id, limit=RECENT_SALES)
    rows = db.rows(queries.SALES, **parameters)
    alarms = db.rows(queries.ALARMS, **parameters)
    listed = rows[:LISTED]
    settings = visit.service.settings
    return {
        "listed": listed,
        "taken_back": {row.id for row in listed if _has_lost_payment(settings, row)},
        "alarms": [row for row in alarms if row.id != shown_id],
        "shown_id": shown_id,
        "is_waiting": any(map(_is_unconfirmed, listed)),
        "suggested": frequent_sales(rows, visit.currency),
        "notes": sorted({row.description for row in rows if row.description}),
    }


def _has_lost_payment(settings: Settings, row: invoices.InvoiceWith) -> bool:
    return row.attention == "reorganised" or is_taken_back(settings, row)


def _is_unconfirmed(row: invoices.InvoiceWith) -> bool:
    """True if the full amount was seen, but does not have enough confirmations yet."""
    return row.status == InvoiceStatus.OPEN and row.covered_ms is not None


def frequent_sales(
    rows: Sequence[invoices.InvoiceWith],
    currency: str,
) -> list[tuple[Decimal, str]]:
    """Returns the most frequent amounts and their notes, the smallest amount first.

    Returns at most MOST_SUGGESTED pairs of an amount and a note. Each was sold at least
    twice. The amounts are without gratuities. Only sales in `currency` count.
    """
    sold = Counter[tuple[Decimal, str]]()
    for row in rows:
        asked = amount_due(row)
        if asked.currency != currency:
            continue
        price = round_money(asked.amount - Decimal(row.gratuity or 0), currency)
        sold[price, row.description or ""] += 1
    frequent = [sale for sale, times in sold.most_common(MOST_SUGGESTED) if times > 1]
    return sorted(frequent)
