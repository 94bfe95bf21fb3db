"""The history of an invoice: rows that are only ever added."""

from enum import StrEnum

from storage.database import every, slot
from storage.models import Event


class Kind(StrEnum):
    """What can happen to an invoice; its detail, as JSON, has what is named here and more."""

    SEEN = "seen"  # an output to its address was shown for the first time, waiting or in a block
    MOVED = "moved"  # it is in a block now
    VANISHED = "vanished"  # it waited and is not shown any more: replaced or dropped
    SEEN_AGAIN = "seen again"  # it had vanished
    SPENT = "spent"  # its coin has moved on, in the block of that height
    UNSPENT = "unspent"  # it has not: that block left the chain
    PAYMENT = "payment"  # what a transaction confirmed counts; the payment's id
    REORGANISED = "reorganised"  # its block left the chain: the payment with that id is undone
    PAID = "paid"  # the end of the invoice, for that reason; begins with BY_HAND: by a human
    EXPIRED = "expired"  # as above
    CANCELED = "canceled"  # as above
    DISMISSED = "dismissed"  # a human has set aside what it wanted attention for, for that reason


ADD = Event.insert(every(Event))
# What may want attention, or end that: not what was merely seen, which anybody can cause.
_MERELY_SEEN = (Kind.SEEN, Kind.MOVED, Kind.VANISHED, Kind.SEEN_AGAIN, Kind.SPENT, Kind.UNSPENT)
_OF_MONEY = [kind.value for kind in Kind if kind not in _MERELY_SEEN]
OF_MONEY = (
    Event.select(Event.kind, Event.detail)
    .where((Event.invoice_id == slot("invoice_id")) & Event.kind.in_(_OF_MONEY))
    .order_by(Event.seq)
)
OF_INVOICE = Event.select().where(Event.invoice_id == slot("invoice_id")).order_by(Event.seq)
