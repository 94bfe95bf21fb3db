"""SQL statements about sent refunds, for exports."""

from types import SimpleNamespace

from peewee import JOIN

from btcpay.parts.refunds.models import Refund, RefundTransaction
from storage.models import Invoice
from storage.queries.lists import keyset
from storage.statement import eq, param, rows_as


class SentRefund(Refund):
    """A sent refund with columns of its invoice; they are None if it has no invoice.

    `created_ms` is the time of the block that has the refund, in unix milliseconds.
    """

    invoice_status: str | None
    reference: str | None
    price_usd: str | None


_OWN = eq(Refund.merchant_id) & Refund.sent_ms.is_null(False)
# The columns by which `keyset.newer` sorts: the time of the block takes the place of the
# creation time.
_BY_BLOCK = SimpleNamespace(created_ms=Refund.sent_ms, seq=Refund.seq)
_COLUMNS = [
    column for column in Refund._meta.sorted_fields if column.name != "created_ms"
]
SENT = keyset.newer(
    rows_as(
        SentRefund,
        Refund.select(
            *_COLUMNS,
            Refund.sent_ms.alias("created_ms"),
            Invoice.status.alias("invoice_status"),
            Invoice.reference,
            Invoice.price_usd,
        )
        .join(Invoice, JOIN.LEFT_OUTER, on=(Invoice.id == Refund.invoice_id))
        .where(_OWN, Refund.sent_ms < param("before")),
    ),
    _BY_BLOCK,
)
LABELED = (
    Refund.select(Refund.id, Refund.tx_hash, Refund.reason)
    .where(_OWN)
    .order_by(Refund.sent_ms, Refund.seq)
)
# The proof of a transaction, which may have sent several refunds.
DOCUMENT = RefundTransaction.select(RefundTransaction.document).where(
    eq(RefundTransaction.txid)
)
