"""An invoice's history, and what every way of ending an invoice writes into it."""

import json
from datetime import datetime

from btcpay.values.errors import StaleError
from btcpay.values.times import to_ms
from storage.database import Database, Row
from storage.queries import events, invoices
from storage.queries.events import Kind


def finish(
    db: Database,
    row: Row,
    now: datetime,
    status: str,
    reason: str,
    tx_hash: str | None = None,
    paid_at: int | None = None,
    settled_reason: str | None = None,
    explorer: str | None = None,
) -> None:
    """Ends an invoice that still has the status of `row`, and records why.

    `settled_reason` is the owner's. Raises StaleError, which undoes the transaction, when the
    status has changed since.
    """
    changed = db.run(
        invoices.FINISH,
        id=row["id"],
        from_status=row["status"],
        status=status,
        tx_hash=tx_hash,
        paid_at=paid_at,
        settled_reason=settled_reason,
        finished_at=to_ms(now),
    )
    if changed != 1:
        raise StaleError(f"invoice {row['id']} is not {row['status']} any more; try again")
    known = {"reason": reason, "explorer": explorer, "settled_reason": settled_reason}
    detail = {name: text for name, text in known.items() if text}
    record(db, row["id"], Kind(status), detail, now)


def record(db: Database, invoice_id: str, kind: Kind, detail: dict, now: datetime) -> None:
    """Adds to the invoice's history; a kind that is not declared is a ValueError."""
    db.run(
        events.ADD,
        invoice_id=invoice_id,
        happened_at=to_ms(now),
        kind=Kind(kind).value,
        detail=json.dumps(detail),
    )
