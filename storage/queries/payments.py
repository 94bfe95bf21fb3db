"""Outputs as they were seen, payments as they count, and what proves them."""

from peewee import Case

from storage.database import every, slot, slots
from storage.models import Invoice, Output, Payment, Proof

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
ADD = Payment.insert(every(Payment)).on_conflict_ignore()

# A part, or late money, now pays the invoice whose address it came to.
SETTLE = Payment.update({Payment.invoice_id: slot("invoice_id")}).where(
    (Payment.address_invoice_id == slot("invoice_id"))
    & (Payment.tx_hash == slot("tx_hash"))
    & Payment.invoice_id.is_null()
)

# All that was ever seen, for `invoice show`.
OUTPUTS = (
    Output.select(Output, Payment.invoice_id.alias("settled_invoice_id"))
    .left_outer_join(Payment, on=(Payment.id == Output.payment_id))
    .where(Output.invoice_id == slot("invoice_id"))
    .order_by(Output.first_seen_at, Output.txid, Output.vout)
)
# Outputs that are money or may become money; an index holds only these.
ALIVE = OUTPUTS.where(Output.vanished_at.is_null())
# Of one transaction, which may have come again.
VANISHED = OUTPUTS.where((Output.txid == slot("txid")) & Output.vanished_at.is_null(False))

_SEEN = (
    Output.first_seen_at,
    Output.amount_sats,
    Output.coinbase,
    Output.vanished_at,
    Output.block_height,
    Output.block_hash,
    Output.block_time_at,
    Output.spent_height,
    Output.proven,
    Output.position,
    Output.seen_waiting,
)
ADD_OUTPUT = Output.insert(
    slots(
        Output.txid,
        Output.vout,
        Output.invoice_id,
        Output.merchant_id,
        *_SEEN,
    )
)
UPDATE_OUTPUT = Output.update(slots(*_SEEN)).where(
    (Output.invoice_id == slot("invoice_id"))
    & (Output.txid == slot("txid"))
    & (Output.vout == slot("vout"))
)
# When an explorer first called a coin spent; nobody has proven it.
SPENT = Output.update({Output.spent_at: slot("at")}).where(
    (Output.invoice_id == slot("invoice_id"))
    & (Output.txid == slot("txid"))
    & (Output.vout == slot("vout"))
)
CREDIT_OUTPUTS = Output.update({Output.payment_id: slot("payment_id")}).where(
    (Output.txid == slot("txid"))
    & (Output.invoice_id == slot("invoice_id"))
    & Output.payment_id.is_null()
    & (Output.proven == 1)
)

ADD_PROOF = Proof.insert(every(Proof))
PROOFS_OF_ADDRESS = (
    Proof.select(Proof.document)
    .join(Payment, on=(Payment.id == Proof.payment_id))
    .where(Payment.address_invoice_id == slot("invoice_id"))
    .order_by(Payment.created_at, Payment.seq)
)

# Money on its way: no payment has been made of it yet.
WAITING = Output.select(
    Output.invoice_id, Output.amount_sats, Output.block_height, Output.coinbase, Output.proven
).where(Output.vanished_at.is_null() & Output.payment_id.is_null())

# The places of a merchant's addresses to which anything has come.
PAID_INDEXES = (
    Invoice.select(Invoice.address_index)
    .join(Output, on=(Output.invoice_id == Invoice.id))
    .where((Invoice.merchant_id == slot("merchant_id")) & Output.vanished_at.is_null())
    .distinct()
)

# The blocks that money was proven to be in and that a reorganisation may still undo.
RECENT_BLOCKS = (
    Output.select(Output.block_height, Output.block_hash)
    .where((Output.proven == 1) & (Output.block_height > slot("final_height")))
    .distinct()
)
IN_BLOCK = (
    Payment.select(Payment)
    .join(Output, on=(Output.payment_id == Payment.id))
    .where(
        (Output.block_height == slot("height"))
        & (Output.block_hash == slot("hash"))
        & (Output.proven == 1)
    )
    .distinct()
)
# Outputs that were proven in that block and are no payment yet.
UNCOUNTED_IN_BLOCK = Output.select().where(
    (Output.block_height == slot("height"))
    & (Output.block_hash == slot("hash"))
    & Output.payment_id.is_null()
    & (Output.proven == 1)
)
# Outputs wait again, in no block. They still count as seen no later than in that block: what came
# in time did come in time.
_WAITS_AGAIN = {
    Output.first_seen_at: Case(
        None,
        [(Output.block_time_at < Output.first_seen_at, Output.block_time_at)],
        Output.first_seen_at,
    ),
    Output.payment_id: None,
    Output.block_height: None,
    Output.block_hash: None,
    Output.block_time_at: None,
    Output.spent_height: None,
    Output.proven: 0,
    Output.position: None,
    Output.coinbase: 0,
}
UNPROVE_OUTPUT = Output.update(_WAITS_AGAIN).where(
    (Output.invoice_id == slot("invoice_id"))
    & (Output.txid == slot("txid"))
    & (Output.vout == slot("vout"))
    & Output.payment_id.is_null()
)
# The three steps that take a payment back.
UNCREDIT_OUTPUTS = Output.update(_WAITS_AGAIN).where(Output.payment_id == slot("payment_id"))
DELETE_PROOF = Proof.delete().where(Proof.payment_id == slot("payment_id"))
DELETE = Payment.delete().where(Payment.id == slot("payment_id"))
# When an invoice is open again, its other payments are parts again.
UNSETTLE = Payment.update({Payment.invoice_id: None}).where(
    Payment.invoice_id == slot("invoice_id")
)
