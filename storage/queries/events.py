"""The history of an invoice: rows that are only ever added."""

from storage.database import slot, slots
from storage.models import Event

ADD = Event.insert(
    slots(
        Event.invoice_id,
        Event.happened_at,
        Event.kind,
        Event.detail,
    )
)
# What may want attention, or end that: not what was merely seen, which anybody can cause.
_OF_MONEY = ("payment", "reorganised", "paid", "expired", "canceled", "dismissed")
OF_MONEY = (
    Event.select(Event.kind, Event.detail)
    .where((Event.invoice_id == slot("invoice_id")) & Event.kind.in_(_OF_MONEY))
    .order_by(Event.seq)
)
OF_INVOICE = Event.select().where(Event.invoice_id == slot("invoice_id")).order_by(Event.seq)
