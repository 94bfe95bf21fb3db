"""Rows for bookkeepers' and wallets' exports, in pages that limit memory."""

from storage.models import Event, Invoice, Output, Payment
from storage.queries.events import Kind
from storage.queries.lists import keyset
from storage.queries.payments import PaymentWith
from storage.statement import eq, param, rows_as

# Oldest first. PAYMENTS and INVOICES use the index on merchant and time.
PAYMENTS = keyset.newer(
    rows_as(
        PaymentWith,
        Payment.select(
            *(Payment.seq, Payment.id, Payment.address_invoice_id, Payment.invoice_id),
            *(Payment.amount_sats, Payment.amount_usd_at_receipt, Payment.currency),
            *(
                Payment.value_at_receipt,
                Payment.tx_hash,
                Payment.created_ms,
                Invoice.status,
            ),
            *(
                Invoice.amount_usd_quote,
                Invoice.price_usd,
                Invoice.description,
                Invoice.reference,
            ),
            *(
                *Invoice.PERSONAL,
                Invoice.deposit_address,
                Invoice.gratuity,
                Invoice.bill_id,
            ),
            *(
                Invoice.currency.alias("invoice_currency"),
                Invoice.tx_hash.alias("completed_by"),
            ),
        )
        .join(Invoice, on=(Invoice.id == Payment.address_invoice_id))
        .where(eq(Payment.merchant_id), Payment.created_ms < param("before")),
    ),
    Payment,
)
_IN_PAGE = eq(Payment.merchant_id) & Payment.created_ms.between(
    param("first_ms"), param("last_ms")
)
OUTPUTS_OF_PAGE = (
    Output.select(
        Output.payment_id,
        Output.txid,
        Output.vout,
        Output.block_height,
        Output.block_hash,
    )
    .join(
        Payment,
        on=(
            (Payment.address_invoice_id == Output.invoice_id)
            & (Payment.tx_hash == Output.txid)
            & (Payment.id == Output.payment_id)
        ),
    )
    .where(_IN_PAGE)
    .order_by(Output.vout)
)
RECORDS_OF_PAGE = (
    Event.select(Event.happened_ms, Event.detail)
    .join(Payment, on=(Payment.address_invoice_id == Event.invoice_id))
    .where(_IN_PAGE, Event.kind == Kind.PAYMENT.value)
    .order_by(Event.seq)
)

INVOICES = keyset.newer(
    Invoice.select(
        *(
            Invoice.seq,
            Invoice.id,
            Invoice.description,
            Invoice.reference,
            Invoice.address_index,
        ),
        *(Invoice.deposit_address, Invoice.script, Invoice.created_ms),
    ).where(eq(Invoice.merchant_id)),
    Invoice,
)
OUTPUTS_OF_INVOICES = (
    Output.select(Output.invoice_id, Output.txid, Output.vout)
    .join(Invoice, on=(Invoice.id == Output.invoice_id))
    .where(
        eq(Invoice.merchant_id),
        Invoice.created_ms.between(param("first_ms"), param("last_ms")),
        Output.vanished_ms.is_null(),
    )
    .order_by(Output.first_seen_ms, Output.txid, Output.vout)
)
