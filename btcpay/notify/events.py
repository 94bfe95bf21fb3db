"""Public events, numbered without gaps. Each has its resource as it was at that time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from btcpay import hooks
from btcpay.notify.kinds import EventKind, Kind, PartResource
from btcpay.values.errors import BadRow
from btcpay.values.ids import new_id
from btcpay.values.statuses import InvoiceStatus, LinkStatus
from btcpay.values.times import iso_ms, to_ms
from schemas.resources import Resources
from storage.database import Database
from storage.models import Invoice, PublicEvent
from storage.queries import deliveries, events, invoices, links
from storage.statement import blank, replace

# The resources of parts (optional plug-ins), by name.
PART_RESOURCES: dict[str, PartResource[Any]] = {
    part.resource.name: part.resource for part in hooks.of(hooks.EventKinds)
}
_ALL: list[Kind] = [
    *EventKind,
    *(kind for resource in PART_RESOURCES.values() for kind in resource.kinds),
]
KINDS: dict[str, Kind] = {kind.value: kind for kind in _ALL}
PAGE = 100
# Longer than any delivery is retried, and longer than a shop closes for holidays.
KEPT = timedelta(days=30)
# The values of a new invoice in the columns that later events change.
_NEW = {"status": InvoiceStatus.OPEN, "tx_hash": None, "paid_ms": None}
_BESIDE = (
    "received_sats",
    "unconfirmed_sats",
    "missing_sats",
    "attention",
    "transaction",
)


@dataclass(frozen=True)
class Event:
    """A public event.

    `number` is its position in this service's sequence of events. `id` identifies it to
    receivers. `is_test` marks a made-up event for testing a receiver; its JSON says so.
    """

    number: int
    id: str
    merchant_id: int
    kind: Kind
    happened_at: str
    data: dict[str, Any]
    is_test: bool = False

    @property
    def body(self) -> bytes:
        """The JSON body that is sent (Standard Webhooks: type, timestamp, data)."""
        return orjson.dumps(self._content)

    @property
    def line(self) -> bytes:
        """The JSON object on one line, with `number` and `id` added."""
        return orjson.dumps({"number": self.number, "id": self.id} | self._content)

    @property
    def _content(self) -> dict[str, Any]:
        content = {"type": self.kind, "timestamp": self.happened_at, "data": self.data}
        if self.is_test:
            return content | {"test": True}
        return content


def events_after(
    db: Database,
    resources: Resources,
    number: int,
    limit: int = PAGE,
) -> list[Event]:
    """Returns up to `limit` events with a number above `number`, in order and without a gap.

    New events are numbered first.
    """
    events.number_new(db)
    rows = db.rows(events.AFTER, number=number, limit=limit)
    return [event_of(db, resources, row) for row in rows]


def last_number(db: Database) -> int:
    """Returns the number of the newest event; 0 if there is none. New events are numbered
    first.
    """
    events.number_new(db)
    return db.get(events.LAST)[0]


def event_of(db: Database, resources: Resources, row: PublicEvent) -> Event:
    """Returns the event of a database row, with data as the API shows it.

    Raises BadRow.
    """
    kind = KINDS.get(row.kind)
    if kind is None:
        raise BadRow(f"{row.kind!r} is no kind of event")
    data = _data_of(db, resources, row, kind)
    happened_at = iso_ms(row.happened_ms)
    return Event(row.number or 0, row.id, row.merchant_id, kind, happened_at, data)


def _data_of(
    db: Database,
    resources: Resources,
    row: PublicEvent,
    kind: Kind,
) -> dict[str, Any]:
    """Returns the event's resource as it was at the event. Raises BadRow."""
    part = PART_RESOURCES.get(kind.resource)
    if part:
        resource = db.get(part.by_id, id=row.resource_id or "")
        former = replace(resource, **state_of(row))
        return {kind.resource: part.serialize(resources.base_url, former)}
    if kind.resource == "payment_link":
        link = db.get(links.ANY_BY_ID, id=row.payment_link_id or "")
        status = LinkStatus.INACTIVE
        if kind == EventKind.PAYMENT_LINK_CREATED:
            status = LinkStatus.ACTIVE
        return {
            "payment_link": resources.payment_link.dump(replace(link, status=status))
        }
    invoice = db.get(invoices.ANY_BY_ID, id=row.invoice_id or "")
    state = None
    if row.state is not None:
        state = state_of(row)
    return invoice_data(resources, invoice, state)


def invoice_data(
    resources: Resources,
    invoice: Invoice,
    state: dict[str, Any] | None,
) -> dict[str, Any]:
    """Returns the data of an event about an invoice, as it was at the event.

    Personal data that has been erased since then is missing. `state` is None for a new
    invoice.
    """
    if state is None:
        state = {
            **_NEW,
            "received_sats": 0,
            "unconfirmed_sats": 0,
            "missing_sats": invoice.amount_sats,
            "attention": None,
        }
    data: dict[str, Any] = {}
    if "payment" in state:
        data["payment"] = resources.payment.serialize(state["payment"])
    former: Any = {name: state[name] for name in _NEW}
    data["invoice"] = resources.invoice.dump(replace(invoice, **former))
    for name in ("reference", "customer_name", "customer_note"):
        data[name] = getattr(invoice, name)
    for name in _BESIDE:
        if name in state:
            data[name] = state[name]
    return data


def state_of(row: PublicEvent) -> dict[str, Any]:
    """Returns the stored values as they were at the event. Raises BadRow."""
    try:
        state = orjson.loads(row.state or "")
    except orjson.JSONDecodeError:
        state = None
    if not isinstance(state, dict):
        raise BadRow("an event's state is no JSON object")
    return state


def delete_old_events(db: Database, now: datetime) -> int:
    """Deletes a batch of events older than KEPT. Returns the number of deleted events.

    Their deliveries are deleted too, and old deliveries without an event. An event that
    waits to be delivered stays, and so do all later ones. The newest event always
    stays, since numbering continues from it.
    """
    events.number_new(db)
    before = to_ms(now - KEPT)
    with db.write():
        db.run(deliveries.FORGET, before=before)
        last = db.get(events.LAST)[0]
        waiting = db.get(deliveries.OLDEST_WAITING)[0]
        end = last
        if waiting is not None:
            end = min(last, waiting)
        newest_old = 0
        for row in db.rows(events.OLDEST):
            number = row.number or 0
            if row.happened_ms >= before or number >= end:
                break
            newest_old = number
        return db.run(events.FORGET, number=newest_old)


def sample_event(resources: Resources, merchant_id: int, now: datetime) -> Event:
    """Returns a made-up `invoice.paid` event, for testing a receiver.

    It is marked as a test. Its ids are those of no real event or invoice, and it has no
    address that could be paid.
    """
    at_ms = to_ms(now)
    sats = 41_667
    invoice = blank(
        Invoice,
        id=f"inv_{'0' * 24}",
        amount_sats=sats,
        amount_usd_quote="25",
        description="A test",
        created_ms=at_ms,
    )
    state = {
        "status": InvoiceStatus.PAID,
        "tx_hash": "00" * 32,
        "paid_ms": at_ms,
        "received_sats": sats,
    }
    state |= {"unconfirmed_sats": 0, "missing_sats": 0, "attention": None}
    data = invoice_data(resources, invoice, state)
    kind = EventKind.INVOICE_PAID
    at = iso_ms(at_ms)
    return Event(0, new_id("evt"), merchant_id, kind, at, data, is_test=True)
