"""What the page of a shop's order owes to that shop: its frame, and the way back."""

import json
from typing import NamedTuple

from storage.database import Database, Row
from storage.queries import stores


class Shop(NamedTuple):
    """`origin`: whose pages may show the order's in a frame, and hear how it stands.

    `leads_back`: once it is paid, who looks at it is led back.
    """

    origin: str
    leads_back: bool


def shop_of(db: Database, invoice: Row) -> Shop | None:
    """None for an invoice that no shop's plug-in has made."""
    if invoice["store_id"] is None:
        return None
    row = db.only(stores.OF_ORDER, id=invoice["id"])
    return Shop(row["shop_url"], bool(json.loads(row["checkout"]).get("redirectAutomatically")))
