"""Writes events and their deliveries, in the same transaction as the change they report."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, cast

import orjson

from btcpay.notify.kinds import EventSubject, Kind, PartResource, R
from btcpay.notify.transport import NewDelivery
from btcpay.notify.transports import TRANSPORTS
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage import at_once
from storage.database import Database, Values, grouped
from storage.models import PublicEvent, Receiver
from storage.queries import deliveries, events, receivers

# By a kind's resource, the column that names what the event is about.
_COLUMNS = {
    "invoice": "invoice_id",
    "payment": "invoice_id",
    "payment_link": "payment_link_id",
}
_OF_PART = "resource_id"


@dataclass(frozen=True)
class News:
    """Something that happened to an invoice, to a payment to its address, or to another row.

    `detail`: the row of a `payment`, or the `transaction` that was seen or has vanished.
    """

    kind: Kind
    detail: Mapping[str, Any] = field(default_factory=dict)


class NewEvent(NamedTuple):
    """News of an invoice, a link or a part's own row, for its merchant's receivers.

    `state` has the values that may change later, such as status and amounts; None for a new one,
    and for a link, of which the kind says all.
    """

    row: EventSubject
    news: News
    state: Mapping[str, Any] | None = None

    @property
    def known(self) -> dict[str, Any]:
        return {**(self.state or {}), **self.news.detail}


def publish(db: Database, told: Sequence[NewEvent], now: datetime) -> None:
    """Adds events in this order, and their deliveries. Call it within `db.write()`."""
    new = [_columns(one, now) for one in told]
    stored = {row.id: row for row in at_once.rows(db, events.ADD, new)}
    ids = sorted({one.row.merchant_id for one in told})
    rows = at_once.rows(db, receivers.OF_MERCHANT, [{"merchant_id": id} for id in ids])
    wanting = grouped(rows, lambda row: row.merchant_id)
    found: list[Values] = []
    for one, columns in zip(told, new, strict=True):
        event = stored[str(columns["id"])]
        for receiver in wanting[one.row.merchant_id]:
            transport = TRANSPORTS.get(receiver.transport)  # None: its part was deleted
            for new_delivery in (
                transport.deliveries_for(receiver, event, one.row, one.known)
                if transport
                else ()
            ):
                if wants(receiver, new_delivery.name):
                    found.append(delivery_columns(receiver, event, new_delivery, now))
    at_once.run(db, deliveries.ADD, found)


def publish_resource(
    db: Database, of: PartResource[R], id: str, kind: Kind, now: datetime
) -> R:
    """An event of a part's own resource, as its row is now, which it returns."""
    row = db.only(of.by_id, id=id)
    state = {name: getattr(row, name) for name in of.state}
    publish(db, [NewEvent(row, News(kind), state)], now)
    return row


def _columns(told: NewEvent, now: datetime) -> Values:
    kind = told.news.kind
    row = told.row
    new: dict[str, Any] = dict.fromkeys((*_COLUMNS.values(), _OF_PART, "number"))
    new[_COLUMNS.get(kind.resource, _OF_PART)] = row.id
    new |= {"id": new_id("evt"), "merchant_id": row.merchant_id, "kind": kind.value}
    state = None if told.state is None else orjson.dumps(told.known).decode()
    return cast(Values, new | {"state": state, "happened_at": to_ms(now)})


def wants(receiver: Receiver, name: str) -> bool:
    """True unless the receiver leaves out this name: an event's kind, or its transport's own."""
    return receiver.kinds is None or name in json.loads(receiver.kinds)


def delivery_columns(
    receiver: Receiver, event: PublicEvent, new_delivery: NewDelivery, now: datetime
) -> Values:
    """The columns of a new delivery, due now."""
    return {
        "receiver_id": receiver.id,
        "about": new_delivery.about,
        "event_seq": event.seq,
        "created_at": to_ms(now),
        "next_at": to_ms(now),
        "line": new_delivery.line,
    }
