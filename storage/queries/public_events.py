"""Events: rows that are added, numbered once, read, and forgotten after a while."""

from peewee import SQL, fn

from storage.database import Database
from storage.models import PublicEvent
from storage.queries import meta
from storage.statement import needed, slot, slots

# Nobody waits for long while so many are numbered or forgotten.
BATCH = 1000

ADD = PublicEvent.insert(
    needed(PublicEvent)
    | slots(PublicEvent.invoice_id, PublicEvent.payment_link_id, PublicEvent.state)
).returning(PublicEvent.seq)
OF_ID = PublicEvent.select().where(
    (PublicEvent.id == slot("id")) & (PublicEvent.merchant_id == slot("merchant_id"))
)
LAST = PublicEvent.select(fn.COALESCE(fn.MAX(PublicEvent.number), 0).alias("number")).where(
    PublicEvent.number.is_null(False)
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
_NEWEST = PublicEvent.select(PublicEvent.seq).where(PublicEvent.number.is_null()).limit(1)
NUMBER = (
    PublicEvent.update({PublicEvent.number: slot("last") + SQL("new.place")})
    .from_(_NEW)
    .where(PublicEvent.seq == SQL("new.seq"))
)

OLDEST = (
    PublicEvent.select(PublicEvent.number, PublicEvent.happened_at)
    .where(PublicEvent.number.is_null(False))
    .order_by(PublicEvent.number)
    .limit(BATCH)
)
FORGET = PublicEvent.delete().where(PublicEvent.number <= slot("number"))


def number_new(db: Database) -> int:
    """Numbers what is new, in the order of insertion; how many that were.

    Those who write never wait for each other: only those who number do, behind one lock. What a
    writer commits later has a higher number than all that could be read before.
    """
    numbered = 0
    while db.row(_NEWEST):
        with db.write():
            meta.lock(db)
            done = db.run(NUMBER, last=db.only(LAST)["number"], limit=BATCH)
        numbered += done
    return numbered
