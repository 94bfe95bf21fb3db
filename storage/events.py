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
OF_INVOICE = Event.select().where(Event.invoice_id == slot("invoice_id")).order_by(Event.seq)
