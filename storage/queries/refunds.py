"""Refunds that were sent, for receipts and exports; btcpay/refunds has the queries of their life."""

from storage.models import Refund
from storage.statement import slot

SENT_OF_INVOICE = (
    Refund.select(Refund.amount_sats, Refund.sent_height)
    .where((Refund.invoice_id == slot("invoice_id")) & Refund.sent_height.is_null(False))
    .order_by(Refund.sent_height, Refund.seq)
)
