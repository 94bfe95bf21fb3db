"""Outputs that were seen, payments that are confirmed, and the proofs of payments."""

from storage.models import Invoice, Output, Payment, Proof
from storage.statement import all_columns, eq, param, params, rows_as

LIST = (
    Payment.select(*Payment.PUBLIC)
    .where(eq(Payment.merchant_id))
    .order_by(Payment.created_ms.desc(), Payment.seq.desc())
    .limit(param("limit"))
)
LIST_BY_INVOICE = LIST.where(eq(Payment.invoice_id))
OF_ADDRESS = (
    Payment.select()
    .where(Payment.address_invoice_id == param("invoice_id"))
    .order_by(Payment.created_ms, Payment.seq)
)

# One payment for each transaction and address; the schema refuses a second one.
ADD = rows_as(Payment, Payment.insert(all_columns(Payment)).returning(Payment))

# Assigns a partial or late payment to the invoice of its address.
SETTLE = Payment.update({Payment.invoice_id: param("invoice_id")}).where(
    Payment.address_invoice_id == param("invoice_id"),
    eq(Payment.tx_hash),
    Payment.invoice_id.is_null(),
)


class OutputWith(Output, Invoice):
    """An output with columns of its invoice. A row has only what its query selects."""

    settled_invoice_id: str | None
    document: str


class PaymentWith(Payment, Invoice):  # type: ignore[misc]  # `tx_hash`, `PUBLIC`: the payment's
    """A payment with columns of the invoice that its address belongs to.

    A row has only the columns that its query selects.
    """

    first_seen_ms: int | None
    invoice_currency: str
    completed_by: str | None


# All outputs ever seen to an invoice's address, also vanished ones.
OUTPUTS = rows_as(
    OutputWith,
    Output.select(Output, Payment.invoice_id.alias("settled_invoice_id"))
    .left_outer_join(Payment, on=(Payment.id == Output.payment_id))
    .where(eq(Output.invoice_id))
    .order_by(Output.first_seen_ms, Output.txid, Output.vout),
)
# Outputs that have not vanished; an index holds only these.
ALIVE = OUTPUTS.where(Output.vanished_ms.is_null())
KNOWN = OUTPUTS.where(
    Output.vanished_ms.is_null() | (Output.vanished_ms > param("vanished_after"))
)
# The vanished outputs of a transaction, which may have been seen again.
VANISHED_OF_TX = OUTPUTS.where(eq(Output.txid), Output.vanished_ms.is_null(False))

# Stores what was seen of an output. Only CREDIT_OUTPUTS sets the payment.
_KEY = (Output.invoice_id, Output.txid, Output.vout)
_ELSEWHERE = {field.name for field in (*_KEY, Output.payment_id)}
_SEEN = [field for field in all_columns(Output) if field.name not in _ELSEWHERE]
PUT_OUTPUT = Output.insert(params(*_KEY, *_SEEN)).on_conflict(
    conflict_target=[*_KEY], preserve=[*_SEEN]
)
# Deletes an output that is no longer needed, unless it is in a block.
_SIGHTING = Output.payment_id.is_null() & Output.block_height.is_null()
FORGET_OUTPUT = Output.delete().where(
    eq(Output.invoice_id, Output.txid, Output.vout), _SIGHTING
)
FORGET_INPUTS = Output.update({Output.inputs: None}).where(
    _SIGHTING, Output.inputs.is_null(False), Output.vanished_ms < param("before")
)
CREDIT_OUTPUTS = Output.update({Output.payment_id: param("payment_id")}).where(
    eq(Output.txid, Output.invoice_id),
    Output.payment_id.is_null(),
    Output.block_height.is_null(False),
)

# Reading a block again gives a proof with one header; a longer stored proof is kept.
ADD_PROOF = Proof.insert(all_columns(Proof)).on_conflict("NOTHING")
_THIS_PROOF = eq(Proof.invoice_id, Proof.txid)
EXTEND_PROOF = Proof.update(params(Proof.document)).where(_THIS_PROOF)
PROOF = Proof.select().where(_THIS_PROOF)
DELETE_PROOF = Proof.delete().where(_THIS_PROOF)
PROOFS_OF_ADDRESS = (
    Proof.select(Proof.document)
    .join(
        Payment,
        on=(
            (Payment.address_invoice_id == Proof.invoice_id)
            & (Payment.tx_hash == Proof.txid)
        ),
    )
    .where(eq(Proof.invoice_id))
    .order_by(Payment.created_ms, Payment.seq)
)

# The maximum on a public page: anybody can pay an address a hundred times.
MAX_SHOWN = 20
_FACTS = (Payment.amount_sats, Output.block_height, Output.block_hash)
FIRST_PROOFS = rows_as(
    OutputWith,
    PROOFS_OF_ADDRESS.select_extend(*_FACTS)
    .join(Output, on=(Output.payment_id == Payment.id))
    .group_by(Proof.invoice_id, Proof.txid, Payment.seq, *_FACTS)
    .limit(MAX_SHOWN),
)

# Deletes a payment that was undone.
DELETE = Payment.delete().where(Payment.id == param("payment_id"))
OF_ID = Payment.select().where(Payment.id == param("payment_id"))
# When an invoice is reopened, its other payments become partial payments again.
UNSETTLE = Payment.update({Payment.invoice_id: None}).where(eq(Payment.invoice_id))
