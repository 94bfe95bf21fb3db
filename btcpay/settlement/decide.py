"""Decides an invoice's status (open, paid or expired) from the outputs to its address.

1. An output counts if it came in time: it was seen before `expires_at`, or its block is
   from before then. An output that is older than the invoice does not count, since the
   address was used before.
2. An output with the required confirmations becomes a payment. In the order of the
   chain, payments settle the invoice until the amount is reached. An output beyond the
   amount, or one that came late, becomes a payment that settles nothing.
3. The invoice is paid by the transaction with which the amount is reached.
4. The invoice is expired if all blocks up to its deadline are read, the mempool was
   queried after the deadline, and both show that too little came in time.

The module is pure. docs/developers/settlement.md explains the rules in full.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from btcpay.settlement.age import came_in_time, was_known
from btcpay.settlement.reason import describe_status
from btcpay.settlement.receipts import make_receipts, receipt_time, settling_outputs
from btcpay.settlement.values import Invoice, Output, Rules, Verdict
from btcpay.values.statuses import InvoiceStatus

# Confirmations after which a coinbase output can be spent. Source: Bitcoin Core,
# consensus/consensus.h.
COINBASE_MATURITY = 100


def required_sats(amount_sats: int, tolerance_percent: Decimal) -> int:
    """Returns the minimum sum that pays an invoice: the amount minus the tolerance.

    The result is rounded up to a whole satoshi.
    """
    forgiven = Decimal(amount_sats) * tolerance_percent / 100
    return amount_sats - int(forgiven)


def missing_sats(
    status: InvoiceStatus,
    amount_sats: int,
    received_sats: int,
    tolerance_percent: Decimal,
) -> int:
    """Returns the satoshis that are still to be sent; 0 once enough was received.

    The result is the difference to the full amount, not to the minimum that the
    tolerance allows.
    """
    if status == InvoiceStatus.PAID:
        return 0
    if received_sats >= required_sats(amount_sats, tolerance_percent):
        return 0
    return amount_sats - received_sats


def decide(
    invoice: Invoice,
    outputs: Sequence[Output],
    tip_height: int,
    ends_at: datetime | None,
    rules: Rules,
    now: datetime,
    credited_only: bool = False,
) -> Verdict:
    """Returns the invoice's status, payments and sums, by the rules of this module.

    `tip_height` is the height of the best chain. The invoice may expire if its deadline
    is not after `ends_at`; if `ends_at` is None, it may not. If `credited_only`, only
    outputs that already belong to a payment count as confirmed.
    """
    tolerance = rules.tolerance_percent
    needed_sats = required_sats(invoice.amount_sats, tolerance)
    present = [output for output in outputs if not output.vanished_at]
    present.sort(key=_chain_order)
    paying = _paying_outputs(present, tip_height, rules, credited_only)
    counting = _counting_outputs(invoice, present)
    counting_set = set(counting)
    confirmed = [output for output in paying if output in counting_set]
    received_sats = _sum(counting)
    confirmed_sats = _sum(confirmed)
    status = _next_status(invoice, received_sats, confirmed_sats, needed_sats, ends_at)
    settling: list[Output] = []
    if status == InvoiceStatus.PAID:
        settling = settling_outputs(invoice, confirmed, needed_sats)
    tx_hash, paid_at = _completion(invoice, status, settling, now)
    unapplied_sats = _coming_unapplied_sats(invoice, present, counting, paying)
    return Verdict(
        status=status,
        tx_hash=tx_hash,
        paid_at=paid_at,
        receipts=make_receipts(invoice, paying, settling, now),
        received_sats=received_sats,
        unconfirmed_sats=received_sats - confirmed_sats,
        missing_sats=missing_sats(
            status, invoice.amount_sats, received_sats, tolerance
        ),
        confirmations=_fewest_confirmations(counting, tip_height),
        reason=describe_status(
            status, counting, outputs, confirmed_sats, needed_sats, rules
        ),
        coming_unapplied_sats=unapplied_sats,
    )


def _completion(
    invoice: Invoice,
    status: InvoiceStatus,
    settling: Sequence[Output],
    now: datetime,
) -> tuple[str | None, datetime | None]:
    """Returns the txid that completes the payment, and the time when it was received.

    If an open invoice becomes paid, they are those of the last output in `settling`.
    Otherwise they are the stored ones.
    """
    if status != InvoiceStatus.PAID or invoice.status != InvoiceStatus.OPEN:
        return invoice.tx_hash, invoice.paid_at
    completing = settling[-1]  # fails if nothing has settled the invoice
    return completing.txid, receipt_time(completing, invoice, now)


def _paying_outputs(
    present: Sequence[Output],
    tip_height: int,
    rules: Rules,
    credited_only: bool,
) -> list[Output]:
    """Returns the outputs that are payments already or have enough confirmations.

    With `credited_only`, returns only those that are payments already.
    """
    if credited_only:
        return [output for output in present if output.credited]
    return [
        output
        for output in present
        if output.credited or is_deep(output, tip_height, rules)
    ]


def _counting_outputs(invoice: Invoice, present: Sequence[Output]) -> list[Output]:
    """Returns the outputs that count towards the amount.

    For a paid invoice these are the outputs that settled it, otherwise those that came
    in time.
    """
    if invoice.status == InvoiceStatus.PAID:
        return [output for output in present if output.settles]
    return [output for output in present if came_in_time(output, invoice)]


def _coming_unapplied_sats(
    invoice: Invoice,
    present: Sequence[Output],
    counting: Sequence[Output],
    paying: Sequence[Output],
) -> int:
    """Returns the sum of the unconfirmed outputs that will settle nothing, in satoshis.

    Each of them becomes a payment once it is confirmed.
    """
    others = set(present) - set(counting) - set(paying)
    return _sum(output for output in others if not was_known(output, invoice))


def _next_status(
    invoice: Invoice,
    received_sats: int,
    confirmed_sats: int,
    needed_sats: int,
    ends_at: datetime | None,
) -> InvoiceStatus:
    """Returns the status that follows from the sums.

    Only an open invoice changes. It may expire if its deadline is not after `ends_at`;
    if `ends_at` is None, it may not.
    """
    if invoice.status != InvoiceStatus.OPEN:
        return invoice.status
    if confirmed_sats >= needed_sats:
        return InvoiceStatus.PAID
    if received_sats >= needed_sats:
        return InvoiceStatus.OPEN
    if invoice.expires_at is None or ends_at is None:
        return InvoiceStatus.OPEN
    if ends_at < invoice.expires_at:
        return InvoiceStatus.OPEN
    return InvoiceStatus.EXPIRED


def _sum(outputs: Iterable[Output]) -> int:
    return sum(output.amount_sats for output in outputs)


def _fewest_confirmations(outputs: Iterable[Output], tip_height: int) -> int:
    return min((_depth(output, tip_height) for output in outputs), default=0)


def _depth(output: Output, tip_height: int) -> int:
    """Returns the confirmations; 0 if there is no block, or it is above the tip."""
    if output.block is None:
        return 0
    return max(0, tip_height - output.block.height + 1)


def is_deep(output: Output, tip_height: int, rules: Rules) -> bool:
    """True if the output has enough confirmations to become a payment."""
    confirmations = rules.confirmations
    if output.coinbase:
        confirmations = max(confirmations, COINBASE_MATURITY)
    return _depth(output, tip_height) >= confirmations


def _chain_order(output: Output) -> tuple[int, int, str, int]:
    """Returns the sort key for the order of the chain, unconfirmed outputs first."""
    height = 0
    if output.block is not None:
        height = output.block.height
    return (height, output.position or 0, output.txid, output.vout)
