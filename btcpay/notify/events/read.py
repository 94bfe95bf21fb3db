"""Reads events: numbered without gaps, with the documented resources as they were."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from btcpay.notify.events.kinds import EventKind
from btcpay.values.errors import BadRow
from btcpay.values.times import iso_ms
from schemas.resources import Resources
from storage.database import Database, Row
from storage.queries import invoices, links, public_events

PAGE = 100
# What a new invoice has come to.
_NEW = {"status": "open", "tx_hash": None, "paid_at": None}
_BESIDE = ("received_sats", "unconfirmed_sats", "missing_sats", "attention", "transaction")


@dataclass(frozen=True)
class Event:
    """What is told: `number` for readers here, `id` for receivers elsewhere."""

    number: int
    id: str
    merchant_id: int
    kind: EventKind
    happened_at: str
    data: dict[str, Any]

    @property
    def body(self) -> bytes:
        """The JSON object that is sent (Standard Webhooks: type, timestamp, data)."""
        return orjson.dumps({"type": self.kind, "timestamp": self.happened_at, "data": self.data})

    @property
    def line(self) -> bytes:
        """The JSON object in one line, with number and id."""
        told = {"number": self.number, "id": self.id, "type": self.kind}
        return orjson.dumps(told | {"timestamp": self.happened_at, "data": self.data})


def after(db: Database, resources: Resources, number: int, limit: int = PAGE) -> list[Event]:
    """The events behind that number, in order and without a gap; numbers what is new first."""
    public_events.number_new(db)
    rows = db.rows(public_events.AFTER, number=number, limit=limit)
    return [event_of(db, resources, row) for row in rows]


def last_number(db: Database) -> int:
    """The number of the newest event, 0 before the first; numbers what is new first."""
    public_events.number_new(db)
    return db.only(public_events.LAST)["number"]


def event_of(db: Database, resources: Resources, row: Row) -> Event:
    """The event of a numbered row, in the words of the interface. Raises BadRow."""
    try:
        kind = EventKind(row["kind"])
    except ValueError as error:
        raise BadRow(str(error)) from None
    show = _link_data if kind.resource == "payment_link" else _invoice_data
    at = iso_ms(row["happened_at"])
    return Event(row["number"], row["id"], row["merchant_id"], kind, at, show(db, resources, row))


def _link_data(db: Database, resources: Resources, row: Row) -> dict[str, Any]:
    status = "active" if row["kind"] == EventKind.PAYMENT_LINK_CREATED else "inactive"
    link = db.only(links.ANY_BY_ID, id=row["payment_link_id"])
    return {"payment_link": resources.payment_link.dump(link | {"status": status})}


def _invoice_data(db: Database, resources: Resources, row: Row) -> dict[str, Any]:
    """Of the e-mail address what is still kept, of everything else what was true then."""
    invoice = db.only(invoices.ANY_BY_ID, id=row["invoice_id"])
    if row["state"] is None:
        came = {"received_sats": 0, "unconfirmed_sats": 0, "missing_sats": invoice["amount_sats"]}
        state = _NEW | came | {"attention": None}
    else:
        state = state_of(row)
    then = {name: state[name] for name in _NEW}
    data = {"payment": resources.payment.dump(state["payment"])} if "payment" in state else {}
    data["invoice"] = resources.invoice.dump(invoice | then)
    return data | {name: state[name] for name in _BESIDE if name in state}


def state_of(row: Row) -> dict[str, Any]:
    """What was true when the event happened. Raises BadRow."""
    try:
        state = orjson.loads(row["state"])
    except orjson.JSONDecodeError:
        state = None
    if not isinstance(state, dict):
        raise BadRow("an event's state is no JSON object")
    return state


def begin(db: Database, name: str) -> int:
    """Has a reader begin behind the newest event, unless it has begun; that event's number."""
    last = last_number(db)
    db.run(public_events.BEGIN, name=name, number=last)
    return last


def take(db: Database, name: str, use: Callable[[list[Row]], None], limit: int = PAGE) -> int:
    """Gives `use` the next rows that this reader has not had, in a transaction; how many.

    Exactly once: what `use` writes and how far the reader has come are committed together, and two
    that read under one name follow each other. A new name begins behind the newest event.
    """
    public_events.number_new(db)
    with db.write():
        reader = db.row(public_events.LOCKED_READER, name=name)
        if reader is None:
            db.run(public_events.BEGIN, name=name, number=db.only(public_events.LAST)["number"])
            return 0
        rows = db.rows(public_events.AFTER, number=reader["number"], limit=limit)
        if rows:
            use(rows)
            moved = {"since": reader["number"], "to": rows[-1]["number"]}
            db.run(public_events.MOVE, name=name, **moved)
        return len(rows)
