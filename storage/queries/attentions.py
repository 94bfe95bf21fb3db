"""Invoices that need a human: at most one row for each invoice, with the reason of the day."""

from peewee import EXCLUDED, JOIN, Case, fn

from storage.models import Attention, Invoice
from storage.queries.invoices import CHAIN, InvoiceWith
from storage.statement import every, same, shaped, slot

# The same reason again is no news: the row keeps its first time.
_SINCE = Case(
    None, [(Attention.reason == EXCLUDED.reason, Attention.since_ms)], EXCLUDED.since_ms
)
WANT = Attention.insert(every(Attention)).on_conflict(
    conflict_target=[Attention.invoice_id],
    update={
        Attention.since_ms: _SINCE,
        Attention.reason: EXCLUDED.reason,
        Attention.stake_minor: EXCLUDED.stake_minor,
    },
)
CLEAR = Attention.delete().where(same(Attention.invoice_id))
COUNT = shaped(
    tuple[int],
    Attention.select(fn.COUNT(Attention.invoice_id)).where(same(Attention.merchant_id)),
)
OF_INVOICE = Attention.select().where(same(Attention.invoice_id))
# Stakes below an amount, in one currency; the smallest first.
BELOW = (
    Attention.select(Attention.invoice_id)
    .join(Invoice, on=(Invoice.id == Attention.invoice_id))
    .where(
        same(Attention.merchant_id),
        Attention.stake_minor < slot("below_minor"),
        same(Invoice.currency),
    )
    .order_by(Attention.stake_minor, Attention.invoice_id)
    .limit(slot("limit"))
)


# An invoice with all columns, the height of the known chain, and the reason for attention.
INVOICE = shaped(
    InvoiceWith,
    Invoice.select(
        Invoice,
        Attention.reason.alias("attention"),
        Attention.since_ms.alias("attention_since_ms"),
        *CHAIN,
    )
    .join(Attention, JOIN.LEFT_OUTER, on=(Attention.invoice_id == Invoice.id))
    .where(same(Invoice.id)),
)
# Read at every scrape: an index that only holds what needs a human.
BY_REASON = shaped(
    tuple[str, int],
    Attention.select(Attention.reason, fn.COUNT(Attention.reason)).group_by(
        Attention.reason
    ),
)
