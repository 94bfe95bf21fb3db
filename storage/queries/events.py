"""The history of an invoice: rows that are only ever added."""

from enum import StrEnum

from peewee import fn

from storage.models import Event
from storage.statement import every, slot


class Kind(StrEnum):
    """What can happen to an invoice; the detail, which is JSON, has at least what is named here."""

    SEEN = "seen"  # an output to its address was shown for the first time, waiting or in a block
    MOVED = "moved"  # it is in a block now
    VANISHED = "vanished"  # it waited, and is shown no more: replaced or dropped
    SEEN_AGAIN = "seen again"  # it had vanished
    SPENT = "spent"  # its coin has moved, in the block of that height
    UNSPENT = "unspent"  # its coin has not moved: that block left the chain
    PAYMENT = "payment"  # its transaction is confirmed and counts; the payment's id
    REORGANISED = "reorganised"  # its block left the chain; the payment of that id is undone
    PAID = "paid"  # the invoice ended for that reason, with `settled_reason` for a human's
    EXPIRED = "expired"  # as above
    CANCELED = "canceled"  # as above
    DISMISSED = "dismissed"  # a human set its attention aside, for that reason


ADD = Event.insert(every(Event))
# What may start or end attention. What was merely seen may not: anybody can cause it.
_MERELY_SEEN = (Kind.SEEN, Kind.MOVED, Kind.VANISHED, Kind.SEEN_AGAIN, Kind.SPENT, Kind.UNSPENT)
_OF_MONEY = [kind.value for kind in Kind if kind not in _MERELY_SEEN]
OF_MONEY = (
    Event.select(Event.kind, Event.detail)
    .where((Event.invoice_id == slot("invoice_id")) & Event.kind.in_(_OF_MONEY))
    .order_by(Event.seq)
)
COUNT = Event.select(fn.COUNT(Event.seq).alias("lines")).where(
    Event.invoice_id == slot("invoice_id")
)
OF_INVOICE = Event.select().where(Event.invoice_id == slot("invoice_id")).order_by(Event.seq)
