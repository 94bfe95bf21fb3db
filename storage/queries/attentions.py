"""Invoices that need a person's attention, with the current reason.

An invoice has at most one row.
"""

from peewee import EXCLUDED, JOIN, Case, fn

from storage.models import Attention, Invoice
from storage.queries.invoices import CHAIN, InvoiceWith
from storage.statement import all_columns, eq, param, rows_as

# The same reason again keeps the row's first time.
_SINCE = Case(
    None, [(Attention.reason == EXCLUDED.reason, Attention.since_ms)], EXCLUDED.since_ms
)
WANT = Attention.insert(all_columns(Attention)).on_conflict(
    conflict_target=[Attention.invoice_id],
    update={
        Attention.since_ms: _SINCE,
        Attention.reason: EXCLUDED.reason,
        Attention.stake_minor: EXCLUDED.stake_minor,
    },
)
CLEAR = Attention.delete().where(eq(Attention.invoice_id))
COUNT = rows_as(
    tuple[int],
    Attention.select(fn.COUNT(Attention.invoice_id)).where(eq(Attention.merchant_id)),
)
OF_INVOICE = Attention.select().where(eq(Attention.invoice_id))
# Invoices whose amount in question (`stake_minor`) is below a limit, in one currency; the smallest
# first.
BELOW = (
    Attention.select(Attention.invoice_id)
    .join(Invoice, on=(Invoice.id == Attention.invoice_id))
    .where(
        eq(Attention.merchant_id),
        Attention.stake_minor < param("below_minor"),
        eq(Invoice.currency),
    )
    .order_by(Attention.stake_minor, Attention.invoice_id)
    .limit(param("limit"))
)


# An invoice with all columns, the known chain's height, and the reason for attention.
INVOICE = rows_as(
    InvoiceWith,
    Invoice.select(
        Invoice,
        Attention.reason.alias("attention"),
        Attention.since_ms.alias("attention_since_ms"),
        *CHAIN,
    )
    .join(Attention, JOIN.LEFT_OUTER, on=(Attention.invoice_id == Invoice.id))
    .where(eq(Invoice.id)),
)
# Read at every scrape of the metrics; the table has only invoices that need attention.
BY_REASON = rows_as(
    tuple[str, int],
    Attention.select(Attention.reason, fn.COUNT(Attention.reason)).group_by(
        Attention.reason
    ),
)
