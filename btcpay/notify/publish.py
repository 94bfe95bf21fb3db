"""Writes events and whom they go to, each in the transaction of what happened."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from btcpay.notify.kinds import EventKind
from btcpay.notify.transport import Named
from btcpay.notify.transports import TRANSPORTS
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.models import Invoice, PaymentLink, PublicEvent, Receiver
from storage.queries import deliveries, events, receivers


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

    `state` is what may change of it later: how it stands and what came; None: as it is made.
    """
    known = {**(state or {}), **news.detail}
    stored = None if state is None else orjson.dumps(known).decode()
    _add(db, row, news.kind, now, known, state=stored, invoice_id=row.id)


def publish_link(db: Database, link: PaymentLink, kind: EventKind, now: datetime) -> None:
    """An event of a payment link; the kind says its status. Call it within `db.write()`."""
    _add(db, link, kind, now, {}, payment_link_id=link.id)


def _add(
    db: Database,
    row: Invoice | PaymentLink,
    kind: EventKind,
    now: datetime,
    known: dict[str, Any],
    **about: str | None,
) -> None:
    new: dict[str, Any] = dict.fromkeys(("invoice_id", "payment_link_id", "state")) | about
    new |= {"id": new_id("evt"), "merchant_id": row.merchant_id, "kind": kind.value}
    event = db.only(events.ADD, **new, happened_at=to_ms(now))
    for receiver in db.rows(receivers.OF_MERCHANT, merchant_id=row.merchant_id):
        transport = TRANSPORTS.get(receiver.transport)  # None: a part that is gone told it
        for named in transport.names(receiver, event, row, known) if transport else ():
            if wants(receiver, named.name):
                db.run(deliveries.ADD, **delivery(receiver, event, named, now))


def wants(receiver: Receiver, name: str) -> bool:
    """Whether it is sent what is called so: an event's kind, or by its transport's own names."""
    return receiver.kinds is None or name in json.loads(receiver.kinds)


def delivery(receiver: Receiver, event: PublicEvent, named: Named, now: datetime) -> Values:
    """What brings it to the receiver from now on."""
    return {
        "receiver_id": receiver.id,
        "about": named.about,
        "event_seq": event.seq,
        "created_at": to_ms(now),
        "next_at": to_ms(now),
        "line": named.line,
    }
