"""Stores events and their deliveries, in the database transaction that causes them."""

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
    """The kind of an event, and values that only events of this kind have.

    `detail` may have the row of a `payment`, or the Bitcoin `transaction` that was seen
    or has vanished.
    """

    kind: Kind
    detail: Mapping[str, Any] = field(default_factory=dict)


class NewEvent(NamedTuple):
    """An event to be published to the receivers of a merchant.

    - `row`: the row that the event is about: an invoice, a payment link, or a row of a
      part (an optional plug-in). The event is published to the merchant of this row.
    - `state`: the values of the row that can change later, such as the status and the
      amounts. It is None for a new invoice, a new link or a deactivated link, whose
      values follow from the kind of the event.
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
    all_receivers: Sequence[Receiver] | None = None,
) -> None:
    """Stores events in this order, with a delivery for each receiver that wants the event.

    Call this function within `db.write()`. `all_receivers` are all receivers of the
    events' merchants, if the caller has loaded them in this database transaction. If
    `all_receivers` is None, this function loads them.
    """
    new_rows = [_columns(new_event, now) for new_event in new_events]
    if all_receivers is None:
        all_receivers = _receivers_of(db, new_events)
    if not all_receivers:
        at_once.queue(db, events.ADD, new_rows)
        return
    # The stored rows have the `seq` that deliveries refer to. They may come in another order.
    stored_by_id = {row.id: row for row in at_once.rows(db, events.ADD, new_rows)}
    receivers_by_merchant = group_by(all_receivers, lambda row: row.merchant_id)
    new_deliveries: list[Values] = []
    for new_event, columns in zip(new_events, new_rows, strict=True):
        event = stored_by_id[str(columns["id"])]
        for receiver in receivers_by_merchant[new_event.row.merchant_id]:
            new_deliveries += _deliveries_to(receiver, event, new_event, now)
    at_once.queue(db, deliveries.ADD, new_deliveries)


def _receivers_of(db: Database, new_events: Sequence[NewEvent]) -> list[Receiver]:
    merchant_ids = sorted({new_event.row.merchant_id for new_event in new_events})
    keys = [Values(merchant_id=id) for id in merchant_ids]
    return at_once.rows(db, receivers.OF_MERCHANT, keys)


def _deliveries_to(
    receiver: Receiver,
    event: PublicEvent,
    new_event: NewEvent,
    now: datetime,
) -> list[Values]:
    """Returns the columns of each delivery of an event that this receiver wants.

    Returns [] if the receiver belongs to a part (an optional plug-in) that is no longer
    installed.
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
    """Publishes an event about a resource of a part (an optional plug-in).

    The event contains the present state of the resource. Returns the resource's row.
    Call this function within `db.write()`.
    """
    row = db.get(of.by_id, id=id)
    state = {name: getattr(row, name) for name in of.state}
    publish(db, [NewEvent(row, News(kind), state)], now)
    return row


def _columns(new_event: NewEvent, now: datetime) -> Values:
    """Returns the columns of a new event, which has no number yet."""
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
    id_column = _COLUMNS.get(kind.resource, "resource_id")
    columns[id_column] = row.id
    return cast(Values, columns)


def wants(receiver: Receiver, name: str) -> bool:
    """True if the receiver wants deliveries of this name.

    `name` is a kind of event, or another name that the receiver's transport defines. A
    receiver without a list of names wants all deliveries.
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
