"""An invoice's history, and what every way of ending an invoice writes into it."""

import json
from datetime import datetime
from typing import Any

from btcpay.values.errors import Refused
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
    explorer: str | None = None,
    **ended: Any,
) -> None:
    """Ends an invoice that still has the status of `row`, and records why.

    `ended`: `tx_hash` and `paid_at` of a paid one, the owner's `settled_reason`. Raises Refused
    (`changed`), which undoes the transaction, when the status has changed since.
    """
    ended = {"tx_hash": None, "paid_at": None, "settled_reason": None} | ended
    ended |= {"status": status, "finished_at": to_ms(now)}
    if db.run(invoices.FINISH, id=row["id"], from_status=row["status"], **ended) != 1:
        message = f"invoice {row['id']} is not {row['status']} any more; try again"
        raise Refused("changed", message)
    known = {"reason": reason, "explorer": explorer, "settled_reason": ended["settled_reason"]}
    detail = {name: text for name, text in known.items() if text}
    record(db, row["id"], Kind(status), detail, now)


def record(db: Database, invoice_id: str, kind: Kind, detail: dict, now: datetime) -> None:
    """Adds to the invoice's history; a kind that is not declared is a ValueError."""
    event = {"kind": Kind(kind).value, "detail": json.dumps(detail), "happened_at": to_ms(now)}
    db.run(events.RECORD, invoice_id=invoice_id, **event)
