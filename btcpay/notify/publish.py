"""Writes events and their deliveries, in the same transaction as the change they report."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from btcpay.notify.kinds import EventKind, Kind
from btcpay.notify.transport import About, Named
from btcpay.notify.transports import TRANSPORTS
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.models import Invoice, PaymentLink, PublicEvent, Receiver
from storage.queries import deliveries, events, receivers

_ABOUT = ("invoice_id", "payment_link_id", "resource_id", "state")


@dataclass(frozen=True)
class News:
    """Something that happened to an invoice, or to a payment to its address.

    `detail`: the row of a `payment`, or the `transaction` that was seen or has vanished.
    """

    kind: EventKind
    detail: Mapping[str, Any] = field(default_factory=dict)


def publish(
    db: Database, row: Invoice, news: News, now: datetime, state: Mapping[str, Any] | None = None
) -> None:
    """An event of an invoice. Call it within `db.write()`.

    `state` has the values that may change later, such as status and amounts; None for a new one.
    """
    known = {**(state or {}), **news.detail}
    stored = None if state is None else orjson.dumps(known).decode()
    _add(db, row, news.kind, now, known, state=stored, invoice_id=row.id)


def publish_link(db: Database, link: PaymentLink, kind: EventKind, now: datetime) -> None:
    """An event of a payment link; the kind says its status. Call it within `db.write()`."""
    _add(db, link, kind, now, {}, payment_link_id=link.id)


def publish_own(
    db: Database, row: About, kind: Kind, state: Mapping[str, Any], now: datetime
) -> None:
    """An event of a part's own resource, with the values that may change. Call it within a write.

    The part's module `kinds` makes the data of it when it is sent.
    """
    known = dict(state)
    _add(db, row, kind, now, known, state=orjson.dumps(known).decode(), resource_id=row.id)


def _add(
    db: Database, row: About, kind: Kind, now: datetime, known: dict[str, Any], **about: str | None
) -> None:
    new: dict[str, Any] = dict.fromkeys(_ABOUT) | about
    new |= {"id": new_id("evt"), "merchant_id": row.merchant_id, "kind": kind.value}
    event = db.only(events.ADD, **new, happened_at=to_ms(now))
    for receiver in db.rows(receivers.OF_MERCHANT, merchant_id=row.merchant_id):
        transport = TRANSPORTS.get(receiver.transport)  # None: its part was deleted
        for named in transport.names(receiver, event, row, known) if transport else ():
            if wants(receiver, named.name):
                db.run(deliveries.ADD, **delivery(receiver, event, named, now))


def wants(receiver: Receiver, name: str) -> bool:
    """True unless it leaves out this name: an event's kind, or a name of its transport's own."""
    return receiver.kinds is None or name in json.loads(receiver.kinds)


def delivery(receiver: Receiver, event: PublicEvent, named: Named, now: datetime) -> Values:
    """The columns of a new delivery, due now."""
    return {
        "receiver_id": receiver.id,
        "about": named.about,
        "event_seq": event.seq,
        "created_at": to_ms(now),
        "next_at": to_ms(now),
        "line": named.line,
    }
