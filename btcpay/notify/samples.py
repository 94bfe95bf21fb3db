"""One made-up event of each kind, to try a receiver with: nothing of it has happened."""

from datetime import datetime
from typing import Any

from btcpay.notify.kinds import EventKind
from btcpay.notify.read import Event
from btcpay.values.ids import new_id
from btcpay.values.times import iso_ms, to_ms
from schemas.resources import Resources
from storage.models import Invoice

SATS = 41_667
# Nobody's: they look like none that was given out.
INVOICE_ID, PAYMENT_ID, LINK_ID = (f"{prefix}_{'0' * 24}" for prefix in ("inv", "pay", "lnk"))
TX_HASH = "00" * 32
_PAID = (EventKind.INVOICE_PAID, EventKind.PAYMENT_RECEIVED)
_STATUSES = {EventKind.INVOICE_EXPIRED: "expired", EventKind.INVOICE_CANCELED: "canceled"}
_TRANSACTION = (EventKind.INVOICE_PAYMENT_SEEN, EventKind.INVOICE_PAYMENT_VANISHED)


def sample(resources: Resources, merchant_id: int, kind: EventKind, now: datetime) -> Event:
    """An event as it would be sent now; there is no address that somebody could pay to."""
    at_ms = to_ms(now)
    data = (
        {"payment_link": resources.payment_link.dump(_link(kind, at_ms))}
        if kind.resource == "payment_link"
        else _invoice_data(resources, kind, at_ms)
    )
    return Event(0, new_id("evt"), merchant_id, kind, iso_ms(at_ms), data)


def _link(kind: EventKind, at_ms: int) -> dict[str, Any]:
    return {
        "id": LINK_ID,
        "status": "active" if kind == EventKind.PAYMENT_LINK_CREATED else "inactive",
        "title": "A test",
        "description": None,
        "amount_mode": "fixed",
        "amount_usd": "25",
        "min_amount_usd": None,
        "max_amount_usd": None,
        "created_at": at_ms,
    }


def _invoice_data(resources: Resources, kind: EventKind, at_ms: int) -> dict[str, Any]:
    is_paid = kind in _PAID
    came_sats = SATS if is_paid or kind == EventKind.INVOICE_PAYMENT_SEEN else 0
    invoice = dict.fromkeys(field.name for field in Invoice.PUBLIC) | {
        "id": INVOICE_ID,
        "status": "paid" if is_paid else _STATUSES.get(kind, "open"),
        "amount_sats": SATS,
        "amount_usd_quote": "25",
        "description": "A test",
        "tx_hash": TX_HASH if is_paid else None,
        "paid_at": at_ms if is_paid else None,
        "created_at": at_ms,
    }
    payment = {
        "id": PAYMENT_ID,
        "invoice_id": INVOICE_ID,
        "amount_sats": SATS,
        "amount_usd_at_receipt": "25",
        "tx_hash": TX_HASH,
        "created_at": at_ms,
    }
    data = {"payment": resources.payment.dump(payment)} if kind.resource == "payment" else {}
    data |= {
        "invoice": resources.invoice.dump(invoice),
        "reference": None,
        "received_sats": came_sats,
        "unconfirmed_sats": 0 if is_paid else came_sats,
        "missing_sats": SATS - came_sats,
        "attention": "paid_late" if kind == EventKind.INVOICE_ATTENTION else None,
    }
    transaction = {"tx_hash": TX_HASH, "amount_sats": SATS}
    return data | ({"transaction": transaction} if kind in _TRANSACTION else {})
