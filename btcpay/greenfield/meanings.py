"""Greenfield's words for an invoice's state and what happens to it.

Source: docs.btcpayserver.org/API/Greenfield/v1, Webhooks.
"""

from collections.abc import Mapping
from typing import Any

from btcpay.notify.kinds import EventKind
from btcpay.settlement.decide import missing_sats
from btcpay.settlement.values import Rules
from storage.models import Invoice

# Each status, and that of ours which an invoice has that is called so.
OURS = {
    "New": "open",
    "Processing": "open",
    "Settled": "paid",
    "Expired": "expired",
    "Invalid": "canceled",
}
WEBHOOKS = (
    "InvoiceCreated InvoiceReceivedPayment InvoiceProcessing InvoicePaymentSettled"
    " InvoiceSettled InvoiceExpired InvoiceInvalid"
)
Said = list[tuple[str, dict[str, Any]]]


def meaning_of(row: Invoice, rules: Rules) -> tuple[str, str]:
    """Status and additional status.

    It is paid late when all that confirmed is enough: OpenCart completes such an order by itself.
    """
    received_sats, beside_sats, status = row.received_sats, row.beside_sats, row.status
    amount_sats, percent = row.amount_sats, rules.tolerance_percent
    if status == "canceled":
        return "Invalid", "Marked"
    if status == "expired":
        if not missing_sats(status, amount_sats, beside_sats, percent):
            return "Expired", "PaidLate"
        return "Expired", "PaidPartial" if received_sats or beside_sats else "None"
    if status == "paid":
        over = "PaidOver" if received_sats + beside_sats > amount_sats else "None"
        return "Settled", "Marked" if row.settled_reason else over
    if missing_sats(status, amount_sats, received_sats, percent):
        return "New", "PaidPartial" if received_sats else "None"
    return "Processing", "PaidOver" if received_sats > amount_sats else "None"


def webhooks_of(kind: EventKind, state: Mapping[str, Any], invoice: Invoice | None) -> Said:
    """The webhooks of an event, in order, each with what it says beside its names.

    Which ones follows from `state` alone, what publish() stores of it; `invoice`: its row now.
    """
    status, came_sats = state.get("status"), state.get("received_sats", 0)
    paid_sats = came_sats + (state.get("beside_sats", 0) if status == "paid" else 0)
    over = {"overPaid": paid_sats > (invoice.amount_sats if invoice else 0)}
    by_hand = {"manuallyMarked": bool(invoice and invoice.settled_reason)}
    payment = {
        "afterExpiration": status in ("expired", "canceled"),
        "paymentMethod": "BTC",
        "paymentMethodId": "BTC-CHAIN",
    }
    is_whole = status == "open" and state.get("missing_sats") == 0
    seen: Said = [("InvoiceReceivedPayment", payment), *([("InvoiceProcessing", over)] * is_whole)]
    first: Said = seen if state.get("is_first_seen") else []
    said: dict[EventKind, Said] = {
        EventKind.INVOICE_CREATED: [("InvoiceCreated", {})],
        EventKind.INVOICE_PAYMENT_SEEN: seen,
        EventKind.PAYMENT_RECEIVED: [*first, ("InvoicePaymentSettled", payment)],
        EventKind.INVOICE_PAID: [("InvoiceSettled", over | by_hand)],
        EventKind.INVOICE_EXPIRED: [("InvoiceExpired", {"partiallyPaid": came_sats > 0})],
        EventKind.INVOICE_CANCELED: [("InvoiceInvalid", {"manuallyMarked": True})],
        EventKind.INVOICE_REOPENED: [("InvoiceInvalid", {"manuallyMarked": False})],
    }
    return said.get(kind, [])
