"""Computes the payments that result from an invoice's confirmed outputs. Pure."""

from collections.abc import Sequence
from datetime import datetime

from btcpay.settlement.age import may_be_older, was_known
from btcpay.settlement.values import Invoice, Output, Receipt
from btcpay.values.statuses import InvoiceStatus


def settling_outputs(
    invoice: Invoice,
    confirmed: Sequence[Output],
    needed_sats: int,
) -> list[Output]:
    """Returns the outputs in `confirmed` that pay the invoice, in the same order.

    For an open invoice, these are the first outputs whose sum reaches `needed_sats`.
    For others, these are the outputs that settle the invoice already. `confirmed` are
    the outputs that came in time and have enough confirmations, in the order of the
    chain.
    """
    if invoice.status != InvoiceStatus.OPEN:
        return [output for output in confirmed if output.settles]
    settling: list[Output] = []
    sum_sats = 0
    for output in confirmed:
        if sum_sats >= needed_sats:
            break
        settling.append(output)
        sum_sats += output.amount_sats
    return settling


def make_receipts(
    invoice: Invoice,
    paying: Sequence[Output],
    settling: Sequence[Output],
    now: datetime,
) -> tuple[Receipt, ...]:
    """Returns the payments, one `Receipt` for each transaction, in the chain's order.

    `paying` are the outputs that are payments or become payments now, in the chain's
    order. `settling` are the outputs in `paying` that pay the invoice.
    """
    settling_txids = {output.txid for output in settling}
    by_txid: dict[str, list[Output]] = {}
    for output in paying:
        by_txid.setdefault(output.txid, []).append(output)
    receipts = []
    for txid, outputs in by_txid.items():
        # The outputs of one transaction are all in the same block.
        first = outputs[0]
        if first.block is None:
            continue
        receipt = Receipt(
            txid=txid,
            amount_sats=sum(output.amount_sats for output in outputs),
            block=first.block,
            received_at=receipt_time(first, invoice, now),
            settles=txid in settling_txids,
            may_be_older=any(may_be_older(output, invoice) for output in outputs),
            is_older=was_known(first, invoice),
        )
        receipts.append(receipt)
    return tuple(receipts)


def receipt_time(output: Output, invoice: Invoice, now: datetime) -> datetime:
    """Returns the time at which an output counts as received.

    It is the block's time, but not before the invoice was created and not after `now`.
    For an unconfirmed output it is `now`.
    """
    if output.block is None:
        return now
    not_before_invoice = max(output.block.mined_at, invoice.created_at)
    return min(not_before_invoice, now)
