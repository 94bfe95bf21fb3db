"""Gaps between paid addresses, kept so that the widest is found without reading them all."""

from peewee import fn

from storage.database import Database, Values
from storage.models import Invoice, Output
from storage.statement import shaped, slot

_PAID = (Invoice.merchant_id == slot("merchant_id")) & Invoice.gap_before.is_null(False)
_INDEX = Invoice.select(Invoice.id, Invoice.address_index).where(_PAID)
_BEFORE = (
    _INDEX.where(Invoice.address_index < slot("address_index"))
    .order_by(Invoice.address_index.desc())
    .limit(1)
)
_BEHIND = (
    _INDEX.where(Invoice.address_index > slot("address_index"))
    .order_by(Invoice.address_index)
    .limit(1)
)
# The highest number of a merchant's addresses to which anything has come, NULL before; and the
# widest step from one of those to the next, the first included.
LAST_PAID = shaped(
    tuple[int | None], Invoice.select(fn.MAX(Invoice.address_index).alias("last_paid")).where(_PAID)
)
WIDEST = shaped(
    tuple[int | None], Invoice.select(fn.MAX(Invoice.gap_before).alias("widest")).where(_PAID)
)
_SET = Invoice.update({Invoice.gap_before: slot("gap_before")}).where(Invoice.id == slot("id"))
# Confirmed or waiting, spent or not.
_CAME = (
    Output.select(Output.txid)
    .where((Output.invoice_id == slot("id")) & Output.vanished_at.is_null())
    .limit(1)
)


def note(db: Database, invoice: Invoice) -> None:
    """Keeps the gaps in step with what has come to this invoice's address, or vanished.

    Call it in the transaction that changes its outputs, under the lock of its merchant's balance.
    """
    has_come = db.row(_CAME, id=invoice.id) is not None
    if has_come == (invoice.gap_before is not None):
        return
    here: Values = {"merchant_id": invoice.merchant_id, "address_index": invoice.address_index}
    before, behind = db.row(_BEFORE, **here), db.row(_BEHIND, **here)
    start, index = before.address_index if before else -1, invoice.address_index
    db.run(_SET, id=invoice.id, gap_before=index - start if has_come else None)
    if behind:
        step = behind.address_index - (index if has_come else start)
        db.run(_SET, id=behind.id, gap_before=step)


def last_paid(db: Database, merchant_id: int) -> int | None:
    """The highest number of a merchant's addresses to which anything has come; None before."""
    return db.only(LAST_PAID, merchant_id=merchant_id)[0]


def widest(db: Database, merchant_id: int) -> int:
    """The widest step from one paid address to the next, the first included; 0 before any."""
    return db.only(WIDEST, merchant_id=merchant_id)[0] or 0
