"""Lists of all merchants' invoices, links and payments, for the command line."""

from heapq import nlargest
from typing import Unpack

from storage.database import Database, Values
from storage.models import Attention, Invoice, Merchant
from storage.queries import merchants
from storage.queries.invoices import CAME_SATS, InvoiceWith
from storage.queries.lists.keyset import P
from storage.statement import Typed, eq, param, rows_as

_LISTED = rows_as(
    InvoiceWith,
    Invoice.select(
        *(
            field
            for field in Invoice._meta.sorted_fields
            if field is not Invoice.received_sats
        ),
        Merchant.name.alias("merchant"),
        CAME_SATS.alias("received_sats"),
    ).join(Merchant, on=(Merchant.id == Invoice.merchant_id)),
)


# Invoices that need attention, the longest wait first. They are chosen before they are joined, so
# that sums are computed only for them.
_Any = Attention.alias()
_CHOSEN = (
    _Any.select(_Any.invoice_id)
    .order_by(_Any.since_ms, _Any.invoice_id)
    .limit(param("limit"))
)
WANTING = rows_as(
    InvoiceWith,
    _LISTED.select_extend(Attention.reason, Attention.since_ms)
    .join(Attention, on=(Attention.invoice_id == Invoice.id))
    .where(Attention.invoice_id.in_(_CHOSEN))
    .order_by(Attention.since_ms, Attention.invoice_id),
)

_LISTED_BY_SEQ = _LISTED.where(eq(Invoice.seq))
_OF_MERCHANT = (
    Invoice.select(Invoice.seq, Invoice.created_ms)
    .where(eq(Invoice.merchant_id))
    .order_by(Invoice.created_ms.desc(), Invoice.seq.desc())
    .limit(param("limit"))
)
_OF_MERCHANT_BY_STATUS = _OF_MERCHANT.where(eq(Invoice.status))


def newest_invoices(db: Database, status: str | None, limit: int) -> list[InvoiceWith]:
    """Returns the newest `limit` invoices of all merchants, newest first.

    If `status` is given, only invoices with this status are returned.
    """
    query = _OF_MERCHANT
    if status:
        query = _OF_MERCHANT_BY_STATUS
    newest_rows = newest(db, query, limit, status=status)
    return [db.get(_LISTED_BY_SEQ, seq=row.seq) for row in newest_rows]


def newest(
    db: Database,
    of_merchant: Typed[P],
    limit: int,
    /,
    **values: Unpack[Values],
) -> list[P]:
    """Returns the newest `limit` rows of all merchants together, newest first.

    `of_merchant` is the query for the newest rows of one merchant. It is run for each
    merchant, and the results are merged.
    """
    newest_rows: list[P] = []
    for merchant in db.rows(merchants.ALL):
        parameters: Values = {**values, "merchant_id": merchant.id, "limit": limit}
        rows = newest_rows + db.rows(of_merchant, **parameters)
        newest_rows = nlargest(limit, rows, key=lambda row: (row.created_ms, row.seq))
    return newest_rows
