"""The kinds of events that tell of refunds, and what they show."""

from typing import Any

import orjson

from btcpay.notify.kinds import TIME, Kind, optional, text
from btcpay.refunds import queries
from btcpay.values.times import iso_ms
from storage.database import Database
from storage.models import PublicEvent, Refund
from storage.statement import blank, changed

RESOURCE = "refund"


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


KINDS = RefundKind
# The columns that may change; each event keeps them as they were then.
STATE = ("status", "address", "tx_hash", "sent_at")


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


def shown(base_url: str, row: Refund) -> dict[str, Any]:
    """The fields of a refund, as events and commands show them."""
    values = {name: getattr(row, name, None) for name in PROPERTIES}
    times = {"created_at": iso_ms(row.created_at)}
    times["sent_at"] = None if row.sent_at is None else iso_ms(row.sent_at)  # type: ignore[assignment]
    return values | times | {"object": RESOURCE, "refund_url": url_of(base_url, row.id)}


def url_of(base_url: str, refund_id: str) -> str:
    return f"{base_url}/refund/{refund_id}"


def data(db: Database, base_url: str, event: PublicEvent) -> dict[str, Any]:
    """The refund as it was when the event happened."""
    row = db.only(queries.BY_ID, id=event.resource_id or "")
    return shown(base_url, changed(row, **orjson.loads(event.state or "{}")))


def sample(base_url: str, kind: Kind, at_ms: int) -> dict[str, Any]:
    """A made-up refund without an address, so that nobody can pay to it."""
    is_sent = kind == RefundKind.SENT
    status = {"refund.undone": "ready"}.get(kind, kind.partition(".")[2])
    of_kind = {"tx_hash": "00" * 32 if is_sent else None, "sent_at": at_ms if is_sent else None}
    row = blank(Refund, id=f"rfd_{'0' * 24}", status=status, created_at=at_ms, amount_sats=41_667)
    named = changed(row, invoice_id=f"inv_{'0' * 24}", reason="A test", address=None)
    return shown(base_url, changed(named, **of_kind))  # type: ignore[arg-type]
