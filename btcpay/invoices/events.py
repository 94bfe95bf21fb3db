"""An invoice's history, its end, its need for attention, and the later erasure of its addresses."""

import json
import logging
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from btcpay.invoices.status import beside_sats, invoice_of, keep, verdict_of
from btcpay.merchants.account import least_sats_of
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import News, publish
from btcpay.settings.settings import Settings
from btcpay.settlement.attention import Happening, reason_for, stake_sats
from btcpay.values.errors import BadRow, Refused
from btcpay.values.money import stored_amount, to_minor, value_of
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.models import Event, Invoice
from storage.queries import attentions, events, idempotency, invoices
from storage.queries.events import Kind
from storage.statement import as_dict, changed

log = logging.getLogger(__name__)

# A check a minute erases half a million a day; one transaction holds up nobody for long.
BATCH = 400
# Erased in the text itself, so that its numbers stay as first written. A description cannot match,
# since within a JSON string a backslash stands before every quote.
_REFUNDED = (Kind.REFUND_SENT, Kind.REFUND_AGAIN, Kind.REFUND_UNDONE)
_EMAIL = re.compile(r'"customer_email":"(?:[^"\\]|\\.)*"')


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
    """Adds to the invoice's history. Raises ValueError for a kind that is not declared."""
    db.run(
        events.RECORD,
        invoice_id=invoice_id,
        kind=Kind(kind).value,
        detail=json.dumps(detail),
        happened_at=to_ms(now),
    )


def update_attention(
    db: Database, settings: Settings, invoice_id: str, now: datetime, news: Sequence[News] = ()
) -> str | None:
    """Decides again whether an invoice needs attention; returns the reason, or None.

    Stores the amounts received for pages, and publishes the `news` and a new reason, each with the
    final state. Call it in the transaction of the change, behind the balance's lock. Raises BadRow.
    """
    row = db.only(invoices.WHOLE, id=invoice_id)
    verdict = verdict_of(db, settings, row, now)
    keep(db, row, verdict)
    happenings = map(_happening, db.rows(events.OF_MONEY, invoice_id=invoice_id))
    history, least_sats = list(filter(None, happenings)), least_sats_of(row.script)
    reason = reason_for(invoice_of(row), verdict, history, least_sats)
    if not reason:
        db.run(attentions.CLEAR, invoice_id=invoice_id)
    elif _is_new(db, row, reason, stake_sats(reason, invoice_of(row), verdict, history), now):
        news = [*news, News(EventKind.INVOICE_ATTENTION)]
    state = {
        "status": row.status,
        "tx_hash": row.tx_hash,
        "paid_at": row.paid_at,
        "received_sats": verdict.received_sats,
        "unconfirmed_sats": verdict.unconfirmed_sats,
        "missing_sats": verdict.missing_sats,
        "beside_sats": beside_sats(verdict),
        "attention": reason,
    }
    for one in news:
        publish(db, row, one, now, state)
    return reason


def try_update(
    db: Database, settings: Settings, invoice_id: str, now: datetime, news: Sequence[News]
) -> None:
    """`update_attention` for a loop over invoices: a spoiled row stops none of the others."""
    try:
        update_attention(db, settings, invoice_id, now, news)
    except BadRow:
        log.exception("the state of invoice %s is unknown: a row is damaged", invoice_id)


def _is_new(db: Database, row: Invoice, reason: str, at_stake_sats: int, now: datetime) -> bool:
    """Stores the reason and the amount at stake; True if the reason has changed."""
    before = db.row(attentions.OF_INVOICE, invoice_id=row.id)
    value = value_of(at_stake_sats, stored_amount(row.price), row.currency)
    db.run(
        attentions.WANT,
        invoice_id=row.id,
        merchant_id=row.merchant_id,
        reason=reason,
        since_at=to_ms(now),
        stake_minor=to_minor(value, row.currency),
    )
    return before is None or before.reason != reason


def _happening(event: Event) -> Happening | None:
    """None when a reorganisation took back an output that was no payment yet."""
    try:
        kind, detail = event.kind, json.loads(event.detail)
    except ValueError:
        raise BadRow(f"{event.detail!r} is no detail of an event") from None
    if kind == Kind.REORGANISED:
        return Happening("undone", detail["txid"]) if "id" in detail else None
    if kind == Kind.PAID and "settled_reason" in detail:
        return Happening("settled")
    if kind in _REFUNDED:
        return Happening(kind, f"{detail['txid']}:{detail['vout']}", detail["amount_sats"])
    return Happening(kind, detail.get("txid", ""))


def erase_emails(db: Database, retention_days: int, now: datetime) -> int:
    """Erases those of at most BATCH invoices, oldest first; returns how many. 0 days means never.

    Answers that are kept for Idempotency-Keys lose the address too.
    """
    if not retention_days:
        return 0
    before = to_ms(now - timedelta(days=retention_days))
    due = db.rows(invoices.WITH_PERSONAL, before=before, limit=BATCH)
    if not due:
        return 0
    with db.batch():
        return sum(_erase(db, row.id, before) for row in due)


def _erase(db: Database, invoice_id: str, before: int) -> int:
    """1 if it was erased; 0 if the invoice was reopened, or another run came first."""
    with db.write():
        erased = db.run(invoices.ERASE_PERSONAL, id=invoice_id, before=before)
        if erased:
            for kept in db.rows(idempotency.OF_RESOURCE, resource_id=invoice_id):
                answer = _EMAIL.sub('"customer_email":null', kept.response or "")
                db.run(idempotency.REWRITE, **as_dict(changed(kept, response=answer)))
    return erased
