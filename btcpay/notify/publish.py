"""Writes events and their deliveries, in the same transaction as the change they report."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, cast

import orjson

from btcpay.notify.kinds import EventKind, Kind, R, Resource
from btcpay.notify.transport import About, Named
from btcpay.notify.transports import TRANSPORTS
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage import at_once
from storage.database import Database, Values, grouped
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


class Told(NamedTuple):
    """News of an invoice, for its merchant's receivers.

    `state` has the values that may change later, such as status and amounts; None for a new one.
    """

    row: Invoice
    news: News
    state: Mapping[str, Any] | None = None


def publish(db: Database, told: Sequence[Told], now: datetime) -> None:
    """Events of invoices, in this order. Call it within `db.write()`."""
    added: list[_Added] = []
    for row, news, state in told:
        known = {**(state or {}), **news.detail}
        stored = None if state is None else orjson.dumps(known).decode()
        new = _new(row, news.kind, now, state=stored, invoice_id=row.id)
        added.append(_Added(row, new, known))
    _add(db, added, now)


def publish_link(db: Database, link: PaymentLink, kind: EventKind, now: datetime) -> None:
    """An event of a payment link; the kind says its status. Call it within `db.write()`."""
    _add(db, [_Added(link, _new(link, kind, now, payment_link_id=link.id), {})], now)


def publish_own(db: Database, of: Resource[R], id: str, kind: Kind, now: datetime) -> R:
    """An event of a part's own resource, as its row is now, which it returns.

    Call it within `db.write()`.
    """
    row = db.only(of.by_id, id=id)
    known = {name: getattr(row, name) for name in of.state}
    new = _new(row, kind, now, state=orjson.dumps(known).decode(), resource_id=id)
    _add(db, [_Added(row, new, known)], now)
    return row


class _Added(NamedTuple):
    """An event: its subject, its columns, and what is known of the state."""

    row: About
    new: Values
    known: dict[str, Any]


def _new(row: About, kind: Kind, now: datetime, **about: str | None) -> Values:
    new: dict[str, Any] = dict.fromkeys(_ABOUT) | about
    new |= {"id": new_id("evt"), "merchant_id": row.merchant_id, "kind": kind.value}
    return cast(Values, new | {"happened_at": to_ms(now)})


def _add(db: Database, added: Sequence[_Added], now: datetime) -> None:
    stored = {row.id: row for row in at_once.rows(db, events.ADD, [one.new for one in added])}
    ids = sorted({one.row.merchant_id for one in added})
    rows = at_once.rows(db, receivers.OF_MERCHANT, [{"merchant_id": id} for id in ids])
    wanting = grouped(rows, lambda row: row.merchant_id)
    found: list[Values] = []
    for one in added:
        event = stored[str(one.new["id"])]
        for receiver in wanting[one.row.merchant_id]:
            transport = TRANSPORTS.get(receiver.transport)  # None: its part was deleted
            for named in transport.names(receiver, event, one.row, one.known) if transport else ():
                if wants(receiver, named.name):
                    found.append(delivery(receiver, event, named, now))
    at_once.run(db, deliveries.ADD, found)


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
