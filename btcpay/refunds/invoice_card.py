"""The refunds on an invoice's page among the merchant's, and the form that makes one."""

from typing import Any

from btcpay.refunds import acts, queries
from storage.database import Database
from storage.models import Invoice

TEMPLATE = "merchant/refund_card.html"


def card(db: Database, row: Invoice, came_sats: int) -> dict[str, Any] | None:
    """The values of the card; None where nothing has come that could go back."""
    if not came_sats:
        return None
    made = db.rows(queries.OF_INVOICE, invoice_id=row.id)
    return {"made": made, "left_sats": acts.left_sats(row, came_sats, acts.made_of(made))}
