"""An invoice's history, and what every way of ending an invoice writes into it."""

import json
from datetime import datetime
from typing import Any

from btcpay.values.errors import Refused
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.models import Invoice
from storage.queries import events, invoices
from storage.queries.events import Kind


def finish(
    db: Database,
    row: Invoice,
    now: datetime,
    status: str,
    reason: str,
    explorer: str | None = None,
    tx_hash: str | None = None,
    paid_at: int | None = None,
    settled_reason: str | None = None,
) -> None:
    """Ends an invoice that still has the status of `row`, and records why.

    `tx_hash` and `paid_at`: of a paid one; `settled_reason`: the owner's. Raises Refused
    (`changed`), which undoes the transaction, when the status has changed since.
    """
    ended: Values = {"tx_hash": tx_hash, "paid_at": paid_at, "settled_reason": settled_reason}
    ended |= {"status": status, "finished_at": to_ms(now)}
    ended |= {"id": row.id, "from_status": row.status}
    if db.run(invoices.FINISH, **ended) != 1:
        message = f"invoice {row.id} is not {row.status} any more; try again"
        raise Refused("changed", message)
    known = {"reason": reason, "explorer": explorer, "settled_reason": settled_reason}
    detail = {name: text for name, text in known.items() if text}
    record(db, row.id, Kind(status), detail, now)


def record(
    db: Database, invoice_id: str, kind: Kind, detail: dict[str, Any], now: datetime
) -> None:
    """Adds to the invoice's history; a kind that is not declared is a ValueError."""
    db.run(
        events.RECORD,
        invoice_id=invoice_id,
        kind=Kind(kind).value,
        detail=json.dumps(detail),
        happened_at=to_ms(now),
    )
