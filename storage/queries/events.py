"""The history of invoices, and the events for receivers.

Events are numbered once, in order, and deleted after a time.
"""

from enum import StrEnum

from peewee import SQL, fn

from storage.database import Database
from storage.models import Event, PublicEvent
from storage.queries import meta
from storage.statement import all_columns, eq, param, rows_as


class Kind(StrEnum):
    """The kinds of entries in an invoice's history.

    The comments say what each kind means, and which values its JSON detail always has.
    """

    # an output to the invoice's address was first seen, in the mempool or in a block
    SEEN = "seen"
    MOVED = "moved"  # the output is in a block now
    VANISHED = "vanished"  # the output has left the mempool: replaced or dropped
    SEEN_AGAIN = "seen again"  # an output that had vanished was seen again
    SPENT = "spent"  # the output was spent; the detail has the block's height
    # the output is unspent again, because the block that spent it left the chain
    UNSPENT = "unspent"
    # the output's transaction is confirmed; the detail has the payment's id
    PAYMENT = "payment"
    # the block of an output left the chain; the detail has the id of the payment that this
    # undid, if there was one
    REORGANISED = "reorganised"
    # the invoice was paid; the detail has the reason, and `settled_reason` if a person decided
    PAID = "paid"
    EXPIRED = "expired"  # the invoice expired; the detail has the reason
    CANCELED = "canceled"  # the owner canceled the invoice; the detail has the reason
    # a person decided that it no longer needs attention; the detail has the reason
    DISMISSED = "dismissed"
    REFUND_MADE = "refund made"  # a refund was created; the detail has its id
    REFUND_READY = "refund ready"  # the refund's address is known
    REFUND_CLEARED = "refund cleared"  # the refund's address was deleted
    REFUND_CANCELED = "refund canceled"  # the refund will not be sent
    REFUND_SENT = "refund sent"  # a block has an output that pays the refund
    # another output pays the same refund
    REFUND_AGAIN = "refund sent again"
    REFUND_UNDONE = "refund undone"  # the block of such an output left the chain


RECORD = Event.insert(all_columns(Event))
# OF_MONEY is the history that can change whether an invoice needs attention. Sightings are not part
# of it, because anybody can cause them; nor are the steps of a refund before the chain has it.
MERELY_SEEN = (
    Kind.SEEN,
    Kind.MOVED,
    Kind.VANISHED,
    Kind.SEEN_AGAIN,
    Kind.SPENT,
    Kind.UNSPENT,
)
PROMISED = (
    Kind.REFUND_MADE,
    Kind.REFUND_READY,
    Kind.REFUND_CLEARED,
    Kind.REFUND_CANCELED,
)
_OF_MONEY = [kind.value for kind in Kind if kind not in (*MERELY_SEEN, *PROMISED)]
OF_MONEY = (
    Event.select(Event.invoice_id, Event.kind, Event.detail)
    .where(eq(Event.invoice_id), Event.kind.in_(_OF_MONEY))
    .order_by(Event.seq)
)
# An invoice's id and its number of history entries.
LENGTH = rows_as(
    tuple[str, int],
    Event.select(Event.invoice_id, fn.COUNT(Event.seq).alias("length"))
    .where(eq(Event.invoice_id))
    .group_by(Event.invoice_id),
)
OF_INVOICE = Event.select().where(eq(Event.invoice_id)).order_by(Event.seq)

# How many events are numbered or deleted in one transaction, so that nobody waits long.
BATCH = 1000

ADD = rows_as(
    PublicEvent, PublicEvent.insert(all_columns(PublicEvent)).returning(PublicEvent)
)
LAST = rows_as(
    tuple[int],
    PublicEvent.select(fn.COALESCE(fn.MAX(PublicEvent.number), 0)).where(
        PublicEvent.number.is_null(False)
    ),
)
AFTER = (
    PublicEvent.select()
    .where(PublicEvent.number > param("number"))
    .order_by(PublicEvent.number)
    .limit(param("limit"))
)

_ANY = PublicEvent.alias()
_NEW = (
    _ANY.select(_ANY.seq, fn.ROW_NUMBER().over(order_by=[_ANY.seq]).alias("place"))
    .where(_ANY.number.is_null())
    .order_by(_ANY.seq)
    .limit(param("limit"))
    .alias("new")
)
_UNNUMBERED = (
    PublicEvent.select(PublicEvent.seq).where(PublicEvent.number.is_null()).limit(1)
)
NUMBER = (
    PublicEvent.update({PublicEvent.number: param("last") + SQL("new.place")})
    .from_(_NEW)
    .where(PublicEvent.seq == SQL("new.seq"))
)

OLDEST = (
    PublicEvent.select(PublicEvent.number, PublicEvent.happened_ms)
    .where(PublicEvent.number.is_null(False))
    .order_by(PublicEvent.number)
    .limit(BATCH)
)
FORGET = PublicEvent.delete().where(PublicEvent.number <= param("number"))


def number_new(db: Database) -> int:
    """Numbers the new events in the order of insertion, and returns how many there were.

    Processes that number events wait for each other, by a lock. Processes that add
    events need not wait. An event that is committed later gets a higher number than all
    events that could be read before.
    """
    numbered = 0
    while db.get_or_none(_UNNUMBERED):
        with db.write():
            meta.lock(db)
            (last_number,) = db.get(LAST)
            numbered += db.run(NUMBER, last=last_number, limit=BATCH)
    return numbered
