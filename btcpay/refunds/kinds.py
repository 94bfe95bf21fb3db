"""The kinds of events that tell of refunds, and what they show."""

from typing import Any

from btcpay.notify.kinds import TIME, Kind, Resource, optional, text
from btcpay.refunds import queries
from storage.models import Refund
from storage.statement import blank


class RefundKind(Kind):
    REQUESTED = (
        "refund.requested",
        "A refund was made, or its address forgotten: its page waits for the payer's address.",
    )
    READY = ("refund.ready", "The refund has an address: the merchant's wallet can send it.")
    SENT = ("refund.sent", "A block has the transaction that sends the refund.")
    UNDONE = (
        "refund.undone",
        "A reorganisation took back the transaction that sent the refund: it is ready again.",
    )
    CANCELED = ("refund.canceled", "The owner canceled the refund before it was sent.")


PROPERTIES: dict[str, Any] = {
    "object": {"type": "string", "const": "refund", "description": "Always `refund`."},
    "id": text("The refund's id; whoever knows it can give its address.", f"rfd_{'0' * 24}"),
    "status": text(
        "The state of the refund.", "ready", enum=["requested", "ready", "sent", "canceled"]
    ),
    "invoice_id": optional("The invoice that was paid, if there is one.", f"inv_{'0' * 24}"),
    "amount_sats": {"type": "integer", "minimum": 1, "examples": [600]}
    | {"description": "Satoshis to be sent."},
    "address": optional("The payer's address; null until it is given.", "bc1q..."),
    "tx_hash": optional("The transaction that sent it, in hex.", "70f36abe..."),
    "reason": optional("The merchant's reason.", "returned coat"),
    "created_at": text("When it was made.", "2026-11-21T06:12:37.806Z", **TIME),
    "sent_at": optional("The time of the block that has it.", "2026-11-21T06:12:37.000Z", **TIME),
    "refund_url": text(
        "Its page, for the payer alone.", "https://pay.example.com/refund/rfd_...", format="uri"
    ),
}


def _sample(kind: Kind, at_ms: int) -> Refund:
    """Without an address, so that nobody can pay to it."""
    is_sent = kind == RefundKind.SENT
    return blank(
        Refund,
        id=f"rfd_{'0' * 24}",
        status={"undone": "ready"}.get(kind.partition(".")[2], kind.partition(".")[2]),
        invoice_id=f"inv_{'0' * 24}",
        amount_sats=41_667,
        reason="A test",
        created_at=at_ms,
        tx_hash="00" * 32 if is_sent else None,
        sent_at=at_ms if is_sent else None,
    )


STATE = ("status", "address", "tx_hash", "sent_at")
RESOURCE = Resource("refund", "rfd", RefundKind, queries.BY_ID, STATE, PROPERTIES, _sample)
