"""Which mails are to be sent: of events that merchants want, and of a check that is overdue."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from btcpay.notify.events import read
from btcpay.notify.events.kinds import EventKind
from btcpay.values.times import from_ms, to_ms
from storage.database import Database, Row
from storage.queries import invoices, mails, meta, public_events
from storage.queries.meta import Key

READER = "mail"
MERCHANT, CUSTOMER = "merchant", "customer"
OVERDUE = timedelta(hours=1)
# Nobody is told of older things; whoever is switched on again later begins anew.
STALE = timedelta(days=4)
KEPT = timedelta(days=30)


def fill(db: Database, now: datetime) -> None:
    """Adds a mail for each thing that somebody wants to be told of, once."""
    while read.take(db, READER, lambda rows: _add_all(db, rows)):
        pass
    _add_overdue(db, now)


def rest(db: Database, now: datetime) -> None:
    """Without settings nothing is added. In the end no event is kept for that."""
    reader = db.row(public_events.READER, name=READER)
    if reader is None:
        return
    public_events.number_new(db)
    unread = db.rows(public_events.AFTER, number=reader["number"], limit=1)
    if unread and from_ms(unread[0]["happened_at"]) < now - STALE:
        db.run(public_events.END, name=READER)


def unchecked_since(db: Database, born_ms: int) -> datetime:
    """When a check was last complete, of a merchant that was added then."""
    checked_at = meta.time(db, Key.CHECKED_AT)
    born_at = from_ms(born_ms)
    return max(checked_at, born_at) if checked_at else born_at


def _add_all(db: Database, rows: Sequence[Row]) -> None:
    wanted = {row["merchant_id"]: row for row in db.rows(mails.WANTED)}
    for row in rows:
        if who := wanted.get(row["merchant_id"]):
            _add_of(db, row, who)


def _add_of(db: Database, row: Row, who: Row) -> None:
    if row["kind"] not in (EventKind.INVOICE_PAID, EventKind.INVOICE_ATTENTION):
        return
    if who["address"]:
        _add(db, row["id"], row["merchant_id"], MERCHANT, row["happened_at"], row["seq"])
    if who["receipts"] and row["kind"] == EventKind.INVOICE_PAID:
        invoice = db.only(invoices.ANY_BY_ID, id=row["invoice_id"])
        if invoice["customer_email"]:
            about, at = invoice["id"], row["happened_at"]
            _add(db, about, row["merchant_id"], CUSTOMER, at, row["seq"])


def _add_overdue(db: Database, now: datetime) -> None:
    """At most once a day (UTC), to each merchant."""
    for who in db.rows(mails.WANTED):
        if who["address"] and now - unchecked_since(db, who["created_at"]) >= OVERDUE:
            db.run(mails.FORGET, before=to_ms(now - KEPT))
            _add(db, f"check {now.date()}", who["merchant_id"], MERCHANT, to_ms(now), None)


def _add(
    db: Database, about: str, merchant_id: int, recipient: str, at_ms: int, event_seq: int | None
) -> None:
    db.run(
        mails.ADD,
        about=about,
        merchant_id=merchant_id,
        recipient=recipient,
        event_seq=event_seq,
        created_at=at_ms,
        next_at=at_ms,
    )
