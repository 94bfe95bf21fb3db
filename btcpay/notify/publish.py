"""Stores events and their deliveries, in the transaction of what has happened."""

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
from storage.database import Database, Values, group_by
from storage.models import PublicEvent, Receiver
from storage.queries import deliveries, events, receivers

# The column that stores the id of the event's subject, by the resource of its kind. Resources of
# parts use `resource_id`.
_COLUMNS = {
    "invoice": "invoice_id",
    "payment": "invoice_id",
    "payment_link": "payment_link_id",
}


@dataclass(frozen=True)
class News:
    """What has happened to an invoice, to a payment to its address, or to another row.

    `detail` has the row of a `payment`, or the `transaction` that was seen or has
    vanished.
    """

    kind: Kind
    detail: Mapping[str, Any] = field(default_factory=dict)


class NewEvent(NamedTuple):
    """An event to be published to the receivers of its row's merchant.

    `row` is the invoice, the payment link or a part's row. `state` has the values that
    can change later, such as status and amounts. The event of a new invoice or link, or
    of a deactivated link, needs none: its state is None.
    """

    row: EventSubject
    news: News
    state: Mapping[str, Any] | None = None

    @property
    def whole_state(self) -> dict[str, Any]:
        return {**(self.state or {}), **self.news.detail}


def publish(
    db: Database,
    new_events: Sequence[NewEvent],
    now: datetime,
    of_merchants: Sequence[Receiver] | None = None,
) -> None:
    """Stores events in this order, with their deliveries.

    Call it within `db.write()`. `of_merchants` are the receivers of the events'
    merchants, if this transaction has read them before.
    """
    new_rows = [_columns(new_event, now) for new_event in new_events]
    if of_merchants is None:
        of_merchants = _receivers_of(db, new_events)
    if not of_merchants:
        at_once.queue(db, events.ADD, new_rows)
        return
    events_by_id = {row.id: row for row in at_once.rows(db, events.ADD, new_rows)}
    by_merchant = group_by(of_merchants, lambda row: row.merchant_id)
    new_deliveries: list[Values] = []
    for new_event, columns in zip(new_events, new_rows, strict=True):
        event = events_by_id[str(columns["id"])]
        for receiver in by_merchant[new_event.row.merchant_id]:
            new_deliveries += _deliveries_to(receiver, event, new_event, now)
    at_once.queue(db, deliveries.ADD, new_deliveries)


def _receivers_of(db: Database, new_events: Sequence[NewEvent]) -> list[Receiver]:
    merchant_ids = sorted({new_event.row.merchant_id for new_event in new_events})
    return at_once.rows(
        db, receivers.OF_MERCHANT, [Values(merchant_id=id) for id in merchant_ids]
    )


def _deliveries_to(
    receiver: Receiver,
    event: PublicEvent,
    new_event: NewEvent,
    now: datetime,
) -> list[Values]:
    """Returns the columns of each delivery of an event that this receiver wants.

    Returns [] if the receiver's transport is that of a deleted part (an optional
    plug-in).
    """
    transport = TRANSPORTS.get(receiver.transport)
    if transport is None:
        return []
    state = new_event.whole_state
    columns = []
    for delivery in transport.deliveries_for(receiver, event, new_event.row, state):
        if wants(receiver, delivery.name):
            columns.append(delivery_columns(receiver, event, delivery, now))
    return columns


def publish_resource(
    db: Database,
    of: PartResource[R],
    id: str,
    kind: Kind,
    now: datetime,
) -> R:
    """Publishes an event about a part's resource as it is now, and returns its row."""
    row = db.get(of.by_id, id=id)
    state = {name: getattr(row, name) for name in of.state}
    publish(db, [NewEvent(row, News(kind), state)], now)
    return row


def _columns(new_event: NewEvent, now: datetime) -> Values:
    kind = new_event.news.kind
    row = new_event.row
    state = None
    if new_event.state is not None:
        state = orjson.dumps(new_event.whole_state).decode()
    columns: dict[str, Any] = {
        "number": None,
        "id": new_id("evt"),
        "merchant_id": row.merchant_id,
        "invoice_id": None,
        "payment_link_id": None,
        "resource_id": None,
        "kind": kind.value,
        "state": state,
        "happened_ms": to_ms(now),
    }
    columns[_COLUMNS.get(kind.resource, "resource_id")] = row.id
    return cast(Values, columns)


def wants(receiver: Receiver, name: str) -> bool:
    """True if the receiver wants deliveries of this name.

    The name is a kind of event, or one that the receiver's transport defines. A
    receiver without a list of names wants all.
    """
    return receiver.kinds is None or name in json.loads(receiver.kinds)


def delivery_columns(
    receiver: Receiver,
    event: PublicEvent,
    new_delivery: NewDelivery,
    now: datetime,
) -> Values:
    """Returns the columns of a new delivery that is due now."""
    return {
        "receiver_id": receiver.id,
        "about": new_delivery.about,
        "event_seq": event.seq,
        "created_ms": to_ms(now),
        "next_ms": to_ms(now),
        "line": new_delivery.line,
    }
