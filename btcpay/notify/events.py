"""Public events: numbered without gaps, each with its resource as it was at the event.

The resource is the object that the event is about: an invoice, a payment or a payment
link, as in the API.
"""

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
from storage.models import Invoice, PaymentLink, PublicEvent
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
# Events are kept longer than any delivery is retried, and longer than a shop closes for holidays.
KEPT = timedelta(days=30)
# The values of a new invoice in the columns that later events change.
_NEW = {"status": InvoiceStatus.OPEN, "tx_hash": None, "paid_ms": None}
# The fields of an event's data that stand beside its invoice, if the event has them.
_FIELDS_BESIDE_INVOICE = (
    "received_sats",
    "unconfirmed_sats",
    "missing_sats",
    "attention",
    "transaction",
)


@dataclass(frozen=True)
class Event:
    """A public event.

    - `number`: the event's position in the sequence of all events of this service.
    - `id`: lets receivers recognise an event that is sent twice.
    - `happened_at`: the time of the event in ISO 8601.
    - `data`: the resource as it was at the time of the event.
    - `is_test`: True for a made-up event that tests a receiver. Its JSON has
      `"test": true`.
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
        """The JSON body that receivers get: type, timestamp and data (Standard Webhooks)."""
        return orjson.dumps(self._content)

    @property
    def line(self) -> bytes:
        """The JSON of `body` on one line, with `number` and `id` added."""
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
    """Returns up to `limit` events with a number above `number`, in order without gaps.

    First gives numbers to the stored events that have none yet. Raises BadRow if a
    stored event is invalid.
    """
    events.number_new(db)
    rows = db.rows(events.AFTER, number=number, limit=limit)
    return [event_of(db, resources, row) for row in rows]


def last_number(db: Database) -> int:
    """Returns the number of the newest event; 0 if there is none.

    First gives numbers to the stored events that have none yet.
    """
    events.number_new(db)
    return db.get(events.LAST)[0]


def event_of(db: Database, resources: Resources, row: PublicEvent) -> Event:
    """Converts a database row to an event, whose data are shown as in the API.

    Raises BadRow if the row is invalid.
    """
    kind = KINDS.get(row.kind)
    if kind is None:
        raise BadRow(f"{row.kind!r} is no kind of event")
    return Event(
        number=row.number or 0,
        id=row.id,
        merchant_id=row.merchant_id,
        kind=kind,
        data=_data_of(db, resources, row, kind),
        happened_at=iso_ms(row.happened_ms),
    )


def _data_of(
    db: Database,
    resources: Resources,
    row: PublicEvent,
    kind: Kind,
) -> dict[str, Any]:
    """Returns the event's resource as it was at the event.

    Raises BadRow if the stored state is invalid.
    """
    part = PART_RESOURCES.get(kind.resource)
    if part:
        resource = db.get(part.by_id, id=row.resource_id or "")
        former = replace(resource, **state_of(row))
        return {kind.resource: part.serialize(resources.base_url, former)}
    if kind.resource == "payment_link":
        link = db.get(links.ANY_BY_ID, id=row.payment_link_id or "")
        return {"payment_link": _link_data(resources, link, kind)}
    invoice = db.get(invoices.ANY_BY_ID, id=row.invoice_id or "")
    state = None
    if row.state is not None:
        state = state_of(row)
    return invoice_data(resources, invoice, state)


def _link_data(resources: Resources, link: PaymentLink, kind: Kind) -> dict[str, Any]:
    """Returns the payment link with the status that it had at the event."""
    status = LinkStatus.INACTIVE
    if kind == EventKind.PAYMENT_LINK_CREATED:
        status = LinkStatus.ACTIVE
    return resources.payment_link.dump(replace(link, status=status))


def invoice_data(
    resources: Resources,
    invoice: Invoice,
    state: dict[str, Any] | None,
) -> dict[str, Any]:
    """Returns the data of an event about an invoice, as it was at the time of the event.

    `state` has the invoice's values at that time; None means those of a new invoice.
    Personal data that has been erased since the event is left out.
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
    for name in _FIELDS_BESIDE_INVOICE:
        if name in state:
            data[name] = state[name]
    return data


def state_of(row: PublicEvent) -> dict[str, Any]:
    """Returns the resource's values at the time of the event, as the event's row has them.

    Raises BadRow if they are no JSON object.
    """
    try:
        state = orjson.loads(row.state or "")
    except orjson.JSONDecodeError:
        state = None
    if not isinstance(state, dict):
        raise BadRow("an event's state is no JSON object")
    return state


def delete_old_events(db: Database, now: datetime) -> int:
    """Deletes a batch of events that are older than KEPT. Returns how many it deleted.

    Also deletes the events' deliveries, and old deliveries that have no event. Keeps the
    oldest event that still waits to be delivered, and all later events. Always keeps
    the newest event, since the number of the next event is one higher.
    """
    events.number_new(db)
    before_ms = to_ms(now - KEPT)
    with db.write():
        db.run(deliveries.FORGET, before=before_ms)
        number = _last_to_delete(db, before_ms)
        return db.run(events.FORGET, number=number)


def _last_to_delete(db: Database, before_ms: int) -> int:
    """Returns the number of the last event that may be deleted; 0 if none may.

    That event and all events before it are older than `before_ms`.
    """
    first_to_keep = db.get(events.LAST)[0]
    oldest_waiting = db.get(deliveries.OLDEST_WAITING)[0]
    if oldest_waiting is not None:
        first_to_keep = min(first_to_keep, oldest_waiting)
    last_to_delete = 0
    for row in db.rows(events.OLDEST):
        number = row.number or 0
        if row.happened_ms >= before_ms or number >= first_to_keep:
            break
        last_to_delete = number
    return last_to_delete


def sample_event(resources: Resources, merchant_id: int, now: datetime) -> Event:
    """Returns a made-up `invoice.paid` event, for testing a receiver.

    The event is marked as a test. Its ids belong to no real event or invoice, and its
    invoice has no address that could be paid.
    """
    now_ms = to_ms(now)
    amount_sats = 41_667
    invoice = blank(
        Invoice,
        id=f"inv_{'0' * 24}",
        amount_sats=amount_sats,
        amount_usd_quote="25",
        description="A test",
        created_ms=now_ms,
    )
    state = {
        "status": InvoiceStatus.PAID,
        "tx_hash": "00" * 32,
        "paid_ms": now_ms,
        "received_sats": amount_sats,
        "unconfirmed_sats": 0,
        "missing_sats": 0,
        "attention": None,
    }
    return Event(
        number=0,
        id=new_id("evt"),
        merchant_id=merchant_id,
        kind=EventKind.INVOICE_PAID,
        happened_at=iso_ms(now_ms),
        data=invoice_data(resources, invoice, state),
        is_test=True,
    )
