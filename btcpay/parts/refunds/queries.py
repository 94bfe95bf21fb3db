"""SQL statements about refunds, and about the outputs that pay to their addresses."""

from collections.abc import Mapping, Sequence
from typing import Any

from peewee import JOIN, Field, Query, fn

from btcpay.parts.refunds.models import Refund, RefundOutput, RefundTransaction
from btcpay.values.statuses import RefundStatus
from storage.models import Invoice, Merchant, Output, Payment
from storage.statement import (
    all_columns,
    count_of,
    eq,
    param,
    params,
    required_columns,
    rows_as,
)

_OLDEST = Refund.seq
_READY = Refund.script.is_null(False) & Refund.sent_height.is_null()
_THIS = eq(Refund.id)
_OWN = eq(Refund.merchant_id)


class RefundWith(Refund):
    """A refund with columns of its invoice; they are None if it has no invoice.

    `invoice_amount` and `invoice_currency` are the invoice's columns `amount` and
    `currency`. `price` is the invoice's price of one bitcoin.
    """

    customer_email: str | None
    reference: str | None
    price_usd: str | None
    price: str | None
    invoice_amount: str | None
    invoice_currency: str | None


BY_ID = Refund.select().where(_THIS)
_WITH_INVOICE = rows_as(
    RefundWith,
    Refund.select(
        Refund,
        Invoice.customer_email,
        Invoice.reference,
        Invoice.price_usd,
        Invoice.price,
        Invoice.amount.alias("invoice_amount"),
        Invoice.currency.alias("invoice_currency"),
    ).join(Invoice, JOIN.LEFT_OUTER, on=(Invoice.id == Refund.invoice_id)),
)
WITH_INVOICE = _WITH_INVOICE.where(_THIS)
OF_STORE = Refund.select().where(_THIS & eq(Refund.store_id))
OF_INVOICE = _WITH_INVOICE.where(eq(Refund.invoice_id)).order_by(_OLDEST)
# The invoice's refunds that are in blocks, in block order.
SENT_OF_INVOICE = _WITH_INVOICE.where(
    eq(Refund.invoice_id), Refund.sent_height.is_null(False)
).order_by(Refund.sent_height, Refund.seq)
READY_OF_MERCHANT = (
    _WITH_INVOICE.where(_OWN & _READY).order_by(_OLDEST).limit(param("limit"))
)
OTHERS_OF_MERCHANT = (
    _WITH_INVOICE.where(_OWN & ~_READY)
    .order_by(Refund.seq.desc())
    .limit(param("limit"))
)
MOST_COUNTED = 100
TO_SEND_COUNT = rows_as(
    tuple[int], count_of(Refund.select(Refund.id).where(_OWN & _READY), MOST_COUNTED)
)
# Subqueries about the merchant of an outer query: TO_SEND has, for each refund to be
# sent, the id of its invoice, or of the refund if it has no invoice. TO_SEND_OF_OUTER
# counts them.
_OF_OUTER = (Refund.merchant_id == Merchant.id) & _READY
TO_SEND = Refund.select(fn.COALESCE(Refund.invoice_id, Refund.id)).where(_OF_OUTER)
TO_SEND_OF_OUTER = count_of(Refund.select(Refund.id).where(_OF_OUTER), MOST_COUNTED)
# The status of the newest refund of an outer query's invoice, without canceled ones.
OF_SALE = (
    Refund.select(Refund.status)
    .where(
        Refund.invoice_id == Invoice.id, Refund.status != RefundStatus.CANCELED.value
    )
    .order_by(Refund.seq.desc())
    .limit(1)
)
WAITS = Refund.select(Refund.id).where(_READY).limit(1)
FIRST_MADE = rows_as(tuple[int | None], Refund.select(fn.MIN(Refund.created_ms)))
NEWEST = Refund.select().order_by(Refund.seq.desc()).limit(param("limit"))
_GIVEN = (
    Refund.invoice_id,
    Refund.basis,
    Refund.asked_amount,
    Refund.asked_currency,
    Refund.reason,
    Refund.store_id,
    Refund.shop_texts,
)
ADD = rows_as(
    Refund, Refund.insert(required_columns(Refund) | params(*_GIVEN)).returning(Refund)
)
# Payments in blocks that were known before the invoice was created, so that nobody sent
# them for the invoice. The merchant may still have accepted such a payment.
_OLDER = (
    Output.select(Output.payment_id)
    .join(Invoice, on=(Invoice.id == Output.invoice_id))
    .where(
        Output.invoice_id == param("invoice_id"),
        Output.payment_id.is_null(False),
        Output.block_height <= Invoice.above_height,
    )
)
CAME = rows_as(
    tuple[int],
    Payment.select(fn.COALESCE(fn.SUM(Payment.amount_sats).cast("BIGINT"), 0)).where(
        Payment.address_invoice_id == param("invoice_id"),
        Payment.invoice_id.is_null(False) | Payment.id.not_in(_OLDER),
    ),
)
_IS_FOR_OTHERS = (Refund.script == param("script")) & (
    Refund.merchant_id != param("merchant_id")
)
WAITS_FOR_OTHERS = Refund.select(Refund.id).where(_READY & _IS_FOR_OTHERS).limit(1)
IS_OURS = Invoice.select(Invoice.id).where(Invoice.script == param("script"))


def _step(
    before: Sequence[RefundStatus],
    after: RefundStatus,
    changes: Mapping[Field, Any],
) -> Query:
    """Returns an UPDATE to the status `after` for a refund whose status is in `before`.

    `changes` are the new values of other columns.
    """
    condition = _THIS & Refund.status.in_(before)
    return Refund.update({**changes, Refund.status: after}).where(condition)


_SEARCHED = (Refund.script, Refund.above_height)
_SENT = (
    Refund.tx_hash,
    Refund.vout,
    Refund.sent_height,
    Refund.sent_ms,
    Refund.sent_sats,
)
_WORTH = (Refund.currency, Refund.value_at_sending, Refund.usd_at_sending)
_NAMED = (Refund.named_txid, Refund.named_vout)
GIVE = _step(
    [RefundStatus.REQUESTED], RefundStatus.READY, params(Refund.address, *_SEARCHED)
)
CLEAR = _step(
    [RefundStatus.READY],
    RefundStatus.REQUESTED,
    dict.fromkeys((Refund.address, *_SEARCHED, *_NAMED)),
)
CANCEL = _step(
    [RefundStatus.REQUESTED, RefundStatus.READY],
    RefundStatus.CANCELED,
    dict.fromkeys((*_SEARCHED, *_NAMED)),
)
SEND = _step([RefundStatus.READY], RefundStatus.SENT, params(*_SENT, *_WORTH))
UNDO = _step([RefundStatus.SENT], RefundStatus.READY, dict.fromkeys((*_SENT, *_WORTH)))
# Stores the output that the merchant names as the refund. The decision that follows
# marks the refund as sent.
NAME_OUTPUT = Refund.update(params(*_NAMED)).where(
    _THIS & (Refund.status == RefundStatus.READY)
)
# Updates the block of a sent refund, if its output is found in another block, for
# example after the stored chain was deleted and built anew.
MOVE = Refund.update(
    {Refund.sent_height: param("block_height"), Refund.sent_ms: param("block_time_ms")}
).where((Refund.tx_hash == param("txid")) & (Refund.vout == param("vout")))

# The scripts for which a block is searched: those of refunds to be sent, and of refunds
# sent since a height. A block is not searched for a refund if the block was known when
# the refund's address was given.
_SOUGHT = Refund.select(Refund.script, Refund.amount_sats).where(
    Refund.above_height < param("height")
)
SOUGHT = rows_as(
    Refund,
    _SOUGHT.where(_READY).union_all(
        _SOUGHT.where(Refund.sent_height >= param("since"))
    ),
)
OF_SCRIPT = Refund.select().where(eq(Refund.script)).order_by(_OLDEST)
_OF_SCRIPT = RefundOutput.script == param("script")
# The outputs on which a decision depends: those of exactly a refund's sum, and those
# that the merchant has named.
_SUMS = Refund.select(Refund.amount_sats).where(Refund.script == param("script"))
_NAMED_THERE = (
    (Refund.script == param("script"))
    & (Refund.named_txid == RefundOutput.txid)
    & (Refund.named_vout == RefundOutput.vout)
)
EXACT = RefundOutput.select().where(_OF_SCRIPT & RefundOutput.amount_sats.in_(_SUMS))
NAMED = rows_as(RefundOutput, RefundOutput.select().join(Refund, on=_NAMED_THERE))

# Outputs to a refund's address that have sent no refund so far, nearest sum first. An
# output that seems to have sent another refund a second time is included, since only
# the merchant knows which refund it was for.
_SENDS = fn.EXISTS(
    Refund.select(Refund.id).where(
        (Refund.tx_hash == RefundOutput.txid) & (Refund.vout == RefundOutput.vout)
    )
)
_IS_FREE = _OF_SCRIPT & (RefundOutput.block_height > param("above_height")) & ~_SENDS
_FREE = RefundOutput.select().where(_IS_FREE).limit(param("limit"))
LESS = _FREE.where(RefundOutput.amount_sats <= param("amount_sats")).order_by(
    RefundOutput.amount_sats.desc(), RefundOutput.txid, RefundOutput.vout
)
MORE = _FREE.where(RefundOutput.amount_sats > param("amount_sats")).order_by(
    RefundOutput.amount_sats, RefundOutput.txid, RefundOutput.vout
)

# A block can be processed again, and after a reorganisation another block can contain
# the transaction. The exchange rates stored at the first time remain.
ADD_TRANSACTION = RefundTransaction.insert(all_columns(RefundTransaction)).on_conflict(
    conflict_target=[RefundTransaction.txid],
    preserve=[RefundTransaction.block_height, RefundTransaction.document],
)
ADD_OUTPUT = RefundOutput.insert(all_columns(RefundOutput)).on_conflict(
    conflict_target=[RefundOutput.txid, RefundOutput.vout],
    preserve=[
        RefundOutput.block_height,
        RefundOutput.block_time_ms,
        RefundOutput.position,
    ],
)
_OUTPUT = eq(RefundOutput.txid, RefundOutput.vout)
FREE_OUTPUT = RefundOutput.select().where(_OUTPUT & _IS_FREE)
SET_AGAIN = RefundOutput.update(params(RefundOutput.again_of)).where(_OUTPUT)
DOCUMENT = RefundTransaction.select(RefundTransaction.document).where(
    eq(RefundTransaction.txid)
)
PRICES = RefundTransaction.select(RefundTransaction.prices).where(
    eq(RefundTransaction.txid)
)

# Deletes the rows of blocks above the last block that both branches have in common.
DROP = rows_as(
    RefundOutput,
    RefundOutput.delete()
    .where(RefundOutput.block_height > param("height"))
    .returning(RefundOutput),
)
DROP_TRANSACTIONS = RefundTransaction.delete().where(
    RefundTransaction.block_height > param("height")
)
LOWER = Refund.update({Refund.above_height: param("height")}).where(
    Refund.above_height > param("height")
)
# When the stored chain is deleted and built anew, these queries set the block height of
# all sent refunds to one that no reorganisation reaches.
KEEP_OUTPUTS = RefundOutput.update({RefundOutput.block_height: param("height")})
KEEP_TRANSACTIONS = RefundTransaction.update(
    {RefundTransaction.block_height: param("height")}
)
KEEP_SENT = Refund.update(
    {Refund.sent_height: param("height"), Refund.above_height: param("height") - 1}
).where(Refund.sent_height.is_null(False))
SENT_BETWEEN = Refund.select(
    Refund.sent_sats, Refund.currency, Refund.value_at_sending
).where(_OWN & (Refund.sent_ms >= param("since")) & (Refund.sent_ms < param("before")))
