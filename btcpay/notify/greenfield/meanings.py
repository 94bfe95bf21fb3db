"""What of our events a shop's plug-in is told, in the words of Greenfield. Pure."""

from collections.abc import Mapping
from typing import Any

from btcpay.notify.kinds import EventKind

CREATED = "InvoiceCreated"
RECEIVED_PAYMENT = "InvoiceReceivedPayment"
PROCESSING = "InvoiceProcessing"
PAYMENT_SETTLED = "InvoicePaymentSettled"
SETTLED = "InvoiceSettled"
EXPIRED = "InvoiceExpired"
INVALID = "InvoiceInvalid"
TYPES = (CREATED, RECEIVED_PAYMENT, PROCESSING, PAYMENT_SETTLED, SETTLED, EXPIRED, INVALID)
_ENDS = {
    EventKind.INVOICE_CREATED: CREATED,
    EventKind.INVOICE_PAID: SETTLED,
    EventKind.INVOICE_EXPIRED: EXPIRED,
    EventKind.INVOICE_CANCELED: INVALID,
    EventKind.INVOICE_REOPENED: INVALID,
}


def types_of(kind: EventKind, state: Mapping[str, Any]) -> list[str]:
    """The webhooks of an event, in order; `state` is what publish() stores of it."""
    if kind in _ENDS:
        return [_ENDS[kind]]
    is_whole = state.get("status") == "open" and not state["missing_sats"]
    processing = [PROCESSING] if is_whole else []
    if kind == EventKind.INVOICE_PAYMENT_SEEN:
        return [RECEIVED_PAYMENT, *processing]
    if kind == EventKind.PAYMENT_RECEIVED:
        received = [RECEIVED_PAYMENT, *processing] if state["is_first_seen"] else []
        return [*received, PAYMENT_SETTLED]
    return []


def flags_of(type: str, kind: EventKind, state: Mapping[str, Any], invoice: Mapping) -> dict:
    """What a webhook of that type says beside its names; `invoice` is the row as it is now."""
    if type in (RECEIVED_PAYMENT, PAYMENT_SETTLED):
        late = state["status"] in ("expired", "canceled")
        return {"afterExpiration": late, "paymentMethodId": "BTC-CHAIN", "paymentMethod": "BTC"}
    if type == PROCESSING:
        return {"overPaid": state["received_sats"] > invoice["amount_sats"]}
    if type == SETTLED:
        by_hand = invoice["settled_reason"] is not None
        over = state["received_sats"] + state["beside_sats"] > invoice["amount_sats"]
        return {"overPaid": over, "manuallyMarked": by_hand}
    if type == EXPIRED:
        return {"partiallyPaid": bool(state["received_sats"])}
    if type == INVALID:
        return {"manuallyMarked": kind == EventKind.INVOICE_CANCELED}
    return {}
