"""Ends invoices (paid, expired or canceled), and writes their history."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from btcpay.invoices.receipt_numbers import ReceiptNumber, give_receipt_numbers
from btcpay.values.errors import ChangeRefused
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import to_ms
from storage import at_once
from storage.database import Database, Values
from storage.models import Invoice
from storage.queries import events, invoices
from storage.queries.events import Kind


class End(NamedTuple):
    """The end of an invoice: its new status, and why.

    `detail` is stored in the invoice's history. It has the `reason`. If the owner has
    decided that the invoice is paid, it also has the owner's text, `settled_reason`.
    `tx_hash` is the id of the transaction that paid the invoice, and `paid_ms` the time;
    both are None unless the invoice is paid.
    """

    row: Invoice
    status: InvoiceStatus
    detail: dict[str, Any]
    tx_hash: str | None = None
    paid_ms: int | None = None


def finish(db: Database, ends: Sequence[End], now: datetime) -> None:
    """Ends invoices, and records the reasons in their history.

    Invoices that become paid get their receipt numbers, in the order in which they were
    paid. Call this function in a database transaction, after you lock the merchants'
    balances. Raises ChangeRefused with the code `changed` if another process changed
    the status of an invoice after its row was loaded. The caller's transaction must
    then be rolled back, since other invoices may have been changed already.
    """
    paid = [end for end in ends if end.status == InvoiceStatus.PAID]
    paid.sort(key=lambda end: (end.paid_ms or 0, end.row.seq))
    receipts = give_receipt_numbers(db, [end.row for end in paid])
    changes = [_change_of(end, receipts.get(end.row.id), now) for end in ends]
    changed_count = at_once.run(db, invoices.FINISH, changes)
    if changed_count != len(changes):
        row = ends[0].row  # the message names any one of them
        raise ChangeRefused(
            "changed", f"invoice {row.id} is not {row.status} any more; try again"
        )
    entries = [
        history_entry(end.row.id, Kind(end.status), end.detail, now) for end in ends
    ]
    at_once.run(db, events.RECORD, entries)


def _change_of(end: End, receipt: ReceiptNumber | None, now: datetime) -> Values:
    """Returns the parameters of the statement `invoices.FINISH`.

    `receipt` is None if the invoice does not become paid. Then the invoice keeps a
    receipt number that it got earlier.
    """
    number = end.row.receipt_number
    tax_percent = end.row.tax_percent
    if receipt:
        number = receipt.number
        tax_percent = receipt.tax_percent
    return {
        "receipt_number": number,
        "tax_percent": tax_percent,
        "tx_hash": end.tx_hash,
        "paid_ms": end.paid_ms,
        "settled_reason": end.detail.get("settled_reason"),
        "status": end.status,
        "finished_ms": to_ms(now),
        "id": end.row.id,
        "from_status": end.row.status,
    }


def history_entry(
    invoice_id: str,
    kind: Kind,
    detail: dict[str, Any],
    now: datetime,
) -> Values:
    """Returns the parameters of the statement `events.RECORD`.

    Raises ValueError for an unknown kind.
    """
    return {
        "invoice_id": invoice_id,
        "kind": Kind(kind).value,
        "detail": json.dumps(detail),
        "happened_ms": to_ms(now),
    }


def record(
    db: Database,
    invoice_id: str,
    kind: Kind,
    detail: dict[str, Any],
    now: datetime,
) -> None:
    """Adds an entry to the invoice's history. Raises ValueError for an unknown kind."""
    db.run(events.RECORD, **history_entry(invoice_id, kind, detail, now))
