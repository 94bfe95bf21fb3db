"""The shop whose pages may show the page of its order in a frame."""

import json
from typing import Any

from btcpay.greenfield import queries
from storage.database import Database
from storage.models import Invoice


def frame_of(db: Database, invoice: Invoice) -> dict[str, Any] | None:
    """The shop's `origin`, and `leads_back`: its page goes on by itself. None without a shop."""
    if invoice.store_id is None:
        return None
    origin = db.only(queries.BY_ID, id=invoice.store_id).shop_url
    sent = json.loads(invoice.shop_order or "{}")
    return {"origin": origin, "leads_back": sent.get("redirectAutomatically", False)}
