"""Invoices for which the mempool is queried, and outputs that are not yet payments.

The mempool is queried for an invoice while a payer views its page, shortly before it
expires, and while a payment to it is unconfirmed.
"""

from storage.models import Invoice, Output
from storage.queries.payments import OutputWith
from storage.statement import eq, param, rows_as

_WATCHED = Invoice.select(
    *(
        Invoice.id,
        Invoice.status,
        Invoice.amount_sats,
        Invoice.checked_ms,
        Invoice.asked_ms,
    ),
    *(Invoice.asked_since, Invoice.expires_ms, Invoice.failures, Invoice.failed_ms),
)
# ASKED and ENDING each use an index that has only open invoices.
_OPEN = Invoice.finished_ms.is_null()
ASKED = _WATCHED.where(_OPEN, Invoice.asked_ms > param("after"))
ENDING = _WATCHED.where(_OPEN, Invoice.expires_ms <= param("before"))
_COMES = Output.vanished_ms.is_null() & Output.payment_id.is_null()
EXPECTING = _WATCHED.where(
    Invoice.id.in_(Output.select(Output.invoice_id).where(_COMES))
)
# An invoice's outputs that do not belong to a payment yet. An output that vanished is left out,
# unless it vanished so recently that the invoice cannot expire yet.
UNSETTLED = Output.select(
    *(Output.invoice_id, Output.amount_sats, Output.first_seen_ms, Output.block_height),
    Output.vanished_ms,
).where(
    Output.invoice_id == param("id"),
    Output.payment_id.is_null(),
    Output.vanished_ms.is_null() | (Output.vanished_ms > param("vanished_after")),
)
LOOKED = Invoice.update(
    {Invoice.checked_ms: param("at"), Invoice.failures: 0, Invoice.failed_ms: None}
).where(eq(Invoice.id))
FAILED = Invoice.update(
    {Invoice.failures: Invoice.failures + 1, Invoice.failed_ms: param("at")}
).where(eq(Invoice.id))


# Outputs in a block that do not belong to a payment yet. A new block may give them enough
# confirmations.
DEEPENING = rows_as(
    OutputWith,
    Output.select(Output, *Invoice.RULES, Output.payment_id.alias("settled_invoice_id"))
    .join(Invoice, on=(Invoice.id == Output.invoice_id))
    .where(_COMES, Output.block_height.is_null(False)),
)
# An invoice's outputs in the mempool.
WAITING = Output.select(
    Output.txid,
    Output.vout,
    Output.amount_sats,
    Output.inputs,
    Output.feerate,
    Output.first_seen_ms,
).where(eq(Output.invoice_id), _COMES, Output.block_height.is_null())
# Outputs in the mempool, with the inputs of their transactions. They are read one invoice at a
# time, because all together may need too much memory.
_SPENDS = (
    Output.payment_id.is_null()
    & Output.block_height.is_null()
    & Output.replaced_height.is_null()
    & Output.inputs.is_null(False)
)
WITH_INPUTS = Output.select(Output.invoice_id).where(_SPENDS).distinct()
INPUTS = Output.select(
    Output.invoice_id,
    Output.merchant_id,
    Output.txid,
    Output.inputs,
).where(_SPENDS, eq(Output.invoice_id))
