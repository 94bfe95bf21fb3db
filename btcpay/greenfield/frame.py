"""Whose page may show an order's in a frame: that of the shop which has asked for it."""

import json
from typing import Any

from btcpay.greenfield import queries
from storage.database import Database
from storage.models import Invoice


def frame_of(db: Database, invoice: Invoice) -> dict[str, Any] | None:
    """The shop's `origin`, and whether it `leads_back` by itself; None of what no shop ordered."""
    if invoice.store_id is None:
        return None
    origin = db.only(queries.BY_ID, id=invoice.store_id).shop_url
    sent = json.loads(invoice.shop_order or "{}")
    return {"origin": origin, "leads_back": sent.get("redirectAutomatically", False)}
