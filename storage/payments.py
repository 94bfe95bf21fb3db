"""Outputs as they were seen, payments as they count, and the balance of both."""

from peewee import Case, fn

from storage.database import slot, slots
from storage.models import Output, Payment

_NEWEST = (Payment.created_at.desc(), Payment.seq.desc())
_OWN = Payment.merchant_id == slot("merchant_id")

PUBLIC = (
    Payment.id,
    Payment.invoice_id,
    Payment.amount_sats,
    Payment.amount_usd_at_receipt,
    Payment.tx_hash,
    Payment.created_at,
)

LIST = Payment.select(*PUBLIC).where(_OWN).order_by(*_NEWEST).limit(slot("limit"))
LIST_BY_INVOICE = (
    Payment.select(*PUBLIC)
    .where(_OWN & (Payment.invoice_id == slot("invoice_id")))
    .order_by(*_NEWEST)
    .limit(slot("limit"))
)
OF_ADDRESS = (
    Payment.select()
    .where(Payment.address_invoice_id == slot("invoice_id"))
    .order_by(Payment.created_at, Payment.seq)
)

# One payment for a transaction and an address: the second insert changes nothing.
ADD = Payment.insert(
    slots(
        Payment.id,
        Payment.merchant_id,
        Payment.address_invoice_id,
        Payment.invoice_id,
        Payment.amount_sats,
        Payment.amount_usd_at_receipt,
        Payment.tx_hash,
        Payment.created_at,
    )
).on_conflict_ignore()

# A part, or late money, becomes payment of the invoice whose address it came to.
SETTLE = Payment.update({Payment.invoice_id: slot("invoice_id")}).where(
    (Payment.address_invoice_id == slot("invoice_id"))
    & (Payment.tx_hash == slot("tx_hash"))
    & Payment.invoice_id.is_null()
)

OUTPUTS = (
    Output.select(Output, Payment.invoice_id.alias("settled_invoice_id"))
    .left_outer_join(Payment, on=(Payment.id == Output.payment_id))
    .where(Output.invoice_id == slot("invoice_id"))
    .order_by(Output.first_seen_at, Output.txid, Output.vout)
)

_SEEN = (
    Output.vanished_at,
    Output.block_height,
    Output.block_hash,
    Output.block_time_at,
    Output.spent_height,
)
ADD_OUTPUT = Output.insert(
    slots(
        Output.txid,
        Output.vout,
        Output.invoice_id,
        Output.merchant_id,
        Output.amount_sats,
        Output.coinbase,
        Output.first_seen_at,
        *_SEEN,
    )
)
UPDATE_OUTPUT = Output.update(slots(*_SEEN)).where(
    (Output.txid == slot("txid")) & (Output.vout == slot("vout"))
)
CREDIT_OUTPUTS = Output.update({Output.payment_id: slot("payment_id")}).where(
    (Output.txid == slot("txid"))
    & (Output.invoice_id == slot("invoice_id"))
    & Output.payment_id.is_null()
)

# Confirmed is what counts as payment and has not moved; the total adds what is on its way.
BALANCE = Output.select(
    fn.COALESCE(
        fn.SUM(Case(None, [(Output.payment_id.is_null(), 0)], Output.amount_sats)), 0
    ).alias("confirmed_sats"),
    fn.COALESCE(fn.SUM(Output.amount_sats), 0).alias("total_sats"),
).where(
    (Output.merchant_id == slot("merchant_id"))
    & Output.vanished_at.is_null()
    & Output.spent_height.is_null()
)
