"""One made-up event of each kind, to try a receiver with: nothing of it has happened."""

from datetime import datetime
from typing import Any

from btcpay.notify.kinds import EventKind
from btcpay.notify.read import Event, of_invoice, of_link
from btcpay.values.ids import new_id
from btcpay.values.times import iso_ms, to_ms
from schemas.resources import Resources
from storage.models import Invoice, PaymentLink
from storage.statement import blank, changed

SATS = 41_667
# Nobody's: they look like none that was given out.
INVOICE_ID, PAYMENT_ID, LINK_ID = (f"{prefix}_{'0' * 24}" for prefix in ("inv", "pay", "lnk"))
TX_HASH = "00" * 32
_STATUSES = {EventKind.INVOICE_EXPIRED: "expired", EventKind.INVOICE_CANCELED: "canceled"}
# There is no address that somebody could pay to.
_INVOICE = blank(
    Invoice, id=INVOICE_ID, amount_sats=SATS, amount_usd_quote="25", description="A test"
)
_LINK = blank(PaymentLink, id=LINK_ID, title="A test", amount_mode="fixed", amount_usd="25")
_PAYMENT = {
    "id": PAYMENT_ID,
    "invoice_id": INVOICE_ID,
    "amount_sats": SATS,
    "amount_usd_at_receipt": "25",
    "tx_hash": TX_HASH,
}


def sample(resources: Resources, merchant_id: int, kind: EventKind, now: datetime) -> Event:
    """An event as it would be sent now."""
    at_ms = to_ms(now)
    if kind.resource == "payment_link":
        data = of_link(resources, kind, changed(_LINK, created_at=at_ms))
    else:
        invoice = changed(_INVOICE, created_at=at_ms)
        data = of_invoice(resources, invoice, _state(kind, at_ms))
    return Event(0, new_id("evt"), merchant_id, kind, iso_ms(at_ms), data)


def _state(kind: EventKind, at_ms: int) -> dict[str, Any]:
    is_paid = kind in (EventKind.INVOICE_PAID, EventKind.PAYMENT_RECEIVED)
    came_sats = SATS if is_paid or kind == EventKind.INVOICE_PAYMENT_SEEN else 0
    state: dict[str, Any] = {
        "status": "paid" if is_paid else _STATUSES.get(kind, "open"),
        "tx_hash": TX_HASH if is_paid else None,
        "paid_at": at_ms if is_paid else None,
        "received_sats": came_sats,
        "unconfirmed_sats": 0 if is_paid else came_sats,
        "missing_sats": SATS - came_sats,
        "attention": "paid_late" if kind == EventKind.INVOICE_ATTENTION else None,
    }
    if kind.resource == "payment":
        state["payment"] = _PAYMENT | {"created_at": at_ms}
    if kind in (EventKind.INVOICE_PAYMENT_SEEN, EventKind.INVOICE_PAYMENT_VANISHED):
        state["transaction"] = {"tx_hash": TX_HASH, "amount_sats": SATS}
    return state
