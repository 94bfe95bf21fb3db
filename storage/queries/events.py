"""An invoice's history, and events for others, which are numbered once and forgotten later."""

from enum import StrEnum

from peewee import SQL, fn

from storage.database import Database
from storage.models import Event, PublicEvent
from storage.queries import meta
from storage.statement import every, same, shaped, slot


class Kind(StrEnum):
    """The kinds of an invoice's history; the detail (JSON) has at least the values named here."""

    SEEN = "seen"  # an output to its address was shown for the first time, waiting or in a block
    MOVED = "moved"  # it is in a block now
    VANISHED = "vanished"  # it waited, and is shown no more: replaced or dropped
    SEEN_AGAIN = "seen again"  # it had vanished
    SPENT = "spent"  # its coin has moved, in the block of that height
    UNSPENT = "unspent"  # its coin has not moved: that block left the chain
    PAYMENT = "payment"  # its transaction is confirmed and counts; the payment's id
    # its block left the chain; the payment of that id is undone
    REORGANISED = "reorganised"
    # the invoice ended for that reason, with `settled_reason` for a human's
    PAID = "paid"
    EXPIRED = "expired"  # as above
    CANCELED = "canceled"  # as above
    DISMISSED = "dismissed"  # a human set its attention aside, for that reason
    REFUND_MADE = "refund made"  # the refund of that id is to go back
    REFUND_READY = "refund ready"  # its address is known
    REFUND_CLEARED = "refund cleared"  # its address is forgotten
    REFUND_CANCELED = "refund canceled"  # it will not be sent
    REFUND_SENT = "refund sent"  # a block has the output that sent it
    REFUND_AGAIN = "refund sent again"  # a block has another one that pays the same
    REFUND_UNDONE = "refund undone"  # such an output's block left the chain


RECORD = Event.insert(every(Event))
# Kinds that may start or end attention. A mere sighting may not: anybody can cause one.
_MERELY_SEEN = (
    Kind.SEEN,
    Kind.MOVED,
    Kind.VANISHED,
    Kind.SEEN_AGAIN,
    Kind.SPENT,
    Kind.UNSPENT,
)
_PROMISED = (
    Kind.REFUND_MADE,
    Kind.REFUND_READY,
    Kind.REFUND_CLEARED,
    Kind.REFUND_CANCELED,
)
_OF_MONEY = [kind.value for kind in Kind if kind not in (*_MERELY_SEEN, *_PROMISED)]
OF_MONEY = (
    Event.select(Event.invoice_id, Event.kind, Event.detail)
    .where(same(Event.invoice_id), Event.kind.in_(_OF_MONEY))
    .order_by(Event.seq)
)
# An invoice with a history, and the number of its entries.
LENGTH = shaped(
    tuple[str, int],
    Event.select(Event.invoice_id, fn.COUNT(Event.seq).alias("length"))
    .where(same(Event.invoice_id))
    .group_by(Event.invoice_id),
)
OF_INVOICE = Event.select().where(same(Event.invoice_id)).order_by(Event.seq)

# So many are numbered or forgotten at once, so that nobody waits for long.
BATCH = 1000

ADD = shaped(PublicEvent, PublicEvent.insert(every(PublicEvent)).returning(PublicEvent))
LAST = shaped(
    tuple[int],
    PublicEvent.select(fn.COALESCE(fn.MAX(PublicEvent.number), 0)).where(
        PublicEvent.number.is_null(False)
    ),
)
AFTER = (
    PublicEvent.select()
    .where(PublicEvent.number > slot("number"))
    .order_by(PublicEvent.number)
    .limit(slot("limit"))
)

_ANY = PublicEvent.alias()
_NEW = (
    _ANY.select(_ANY.seq, fn.ROW_NUMBER().over(order_by=[_ANY.seq]).alias("place"))
    .where(_ANY.number.is_null())
    .order_by(_ANY.seq)
    .limit(slot("limit"))
    .alias("new")
)
_NEWEST = (
    PublicEvent.select(PublicEvent.seq).where(PublicEvent.number.is_null()).limit(1)
)
NUMBER = (
    PublicEvent.update({PublicEvent.number: slot("last") + SQL("new.place")})
    .from_(_NEW)
    .where(PublicEvent.seq == SQL("new.seq"))
)

OLDEST = (
    PublicEvent.select(PublicEvent.number, PublicEvent.happened_ms)
    .where(PublicEvent.number.is_null(False))
    .order_by(PublicEvent.number)
    .limit(BATCH)
)
FORGET = PublicEvent.delete().where(PublicEvent.number <= slot("number"))


def number_new(db: Database) -> int:
    """Numbers the new events, in the order of insertion; returns how many there were.

    Writers never wait for each other; only those who number do, behind one lock. An event that is
    committed later has a higher number than any that could be read before.
    """
    numbered = 0
    while db.row(_NEWEST):
        with db.write():
            meta.lock(db)
            done = db.run(NUMBER, last=db.only(LAST)[0], limit=BATCH)
        numbered += done
    return numbered
