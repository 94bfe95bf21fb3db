"""The state of an invoice, from the outputs to its address: paid, expired or still open, and why.

1. An output counts if it came in time: seen before `expires_at`, or in a block from before then.
   One that is older than the invoice does not: its address was used before.
2. An output with the confirmations that this invoice needs becomes a payment. In the chain's order
   these settle the invoice until the sum is reached; an output beyond the sum, or one that came too
   late, is a payment that settles nothing.
3. The invoice is paid by the transaction that completes the sum.
4. It is expired when every block up to its end is read, the mempool was asked after its end, and
   both together show that too little came in time.

All of it is pure; docs/developers/settlement.md has the rules in full.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import accumulate

from btcpay.settlement.values import Invoice, Output, Receipt, Rules, Verdict
from btcpay.values.statuses import InvoiceStatus

BLOCK_TIME_SLACK = timedelta(hours=2)  # a block's time may be off by so much, both ways
COINBASE_MATURITY = (
    100  # blocks until it can be spent: Bitcoin Core, consensus/consensus.h
)


def required_sats(amount_sats: int, tolerance_percent: Decimal) -> int:
    """The least sum that pays: the amount less the tolerance, rounded up to a whole satoshi."""
    forgiven = Decimal(amount_sats) * tolerance_percent / 100
    return amount_sats - int(forgiven)


def missing_sats(
    status: InvoiceStatus,
    amount_sats: int,
    received_sats: int,
    tolerance_percent: Decimal,
) -> int:
    """Satoshis still to be sent; 0 as soon as enough has come."""
    enough = status == InvoiceStatus.PAID or received_sats >= required_sats(
        amount_sats, tolerance_percent
    )
    if enough:
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
    """The verdict on the facts, by the rules above.

    `tip_height`: of the best block known. `ends_at`: deadlines up to this time may have passed;
    None: none may. `credited_only`: only outputs of payments that were made already are deep.
    """
    needed_sats = required_sats(invoice.amount_sats, rules.tolerance_percent)
    alive = sorted(
        (output for output in outputs if not output.vanished_at), key=_chain_order
    )
    deep = [
        output
        for output in alive
        if output.credited or (not credited_only and is_deep(output, tip_height, rules))
    ]
    # The outputs that count: those that settled a paid invoice, else all that came in time.
    is_paid = invoice.status == InvoiceStatus.PAID
    counting = [
        one for one in alive if (one.settles if is_paid else came_in_time(one, invoice))
    ]
    in_time = set(counting)
    both = [output for output in deep if output in in_time]
    older = {output for output in alive if was_known(output, invoice)}
    coming_unapplied = set(alive) - in_time - set(deep) - older
    received_sats = _sum(counting)
    confirmed_sats = _sum(both)
    is_over = invoice.expires_at and ends_at and ends_at >= invoice.expires_at
    status = invoice.status
    last = None
    settling = _settling(invoice, both, needed_sats)
    if status == InvoiceStatus.OPEN and confirmed_sats >= needed_sats:
        status = InvoiceStatus.PAID
        last = settling[-1]
    elif status == InvoiceStatus.OPEN and is_over and received_sats < needed_sats:
        status = InvoiceStatus.EXPIRED
    return Verdict(
        status=status,
        tx_hash=last.txid if last else invoice.tx_hash,
        paid_at=_receipt_time(last, invoice, now) if last else invoice.paid_at,
        receipts=_receipts(
            invoice, deep, settling if status == InvoiceStatus.PAID else [], now
        ),
        received_sats=received_sats,
        unconfirmed_sats=received_sats - confirmed_sats,
        missing_sats=missing_sats(
            status, invoice.amount_sats, received_sats, rules.tolerance_percent
        ),
        confirmations=min(
            (_depth(output, tip_height) for output in counting), default=0
        ),
        reason=reason_why(
            status, counting, outputs, confirmed_sats, needed_sats, rules
        ),
        coming_unapplied_sats=_sum(coming_unapplied),
    )


def _sum(outputs: Iterable[Output]) -> int:
    return sum(output.amount_sats for output in outputs)


def came_in_time(output: Output, invoice: Invoice) -> bool:
    """True if we or a block had it before the invoice's end, and not before it was made."""
    if is_older(output, invoice):
        return False
    if invoice.expires_at is None or output.first_seen_at < invoice.expires_at:
        return True
    return output.block is not None and output.block.mined_at < invoice.expires_at


def is_older(output: Output, invoice: Invoice) -> bool:
    """True for an output from before the invoice was made: its address was used before.

    1. A block whose header we had by then is older, whatever its time says.
    2. Of the others we learned later, and only their times say how old they are: they are older if
       by more than the slack. An output that we saw waiting is not, whatever its block's time: then
       our clock was ahead when the invoice was made.
    """
    block = output.block
    if block is None:
        return False
    if was_known(output, invoice):
        return True
    return (
        not output.seen_waiting
        and block.mined_at < invoice.created_at - BLOCK_TIME_SLACK
    )


def was_known(output: Output, invoice: Invoice) -> bool:
    """True for an output in a block whose header we had when the invoice was made."""
    if invoice.above_height is None or output.block is None:
        return False
    return output.block.height <= invoice.above_height


def may_be_older(output: Output, invoice: Invoice) -> bool:
    """True if no header was known when the invoice was made, and its block's time is earlier."""
    if invoice.above_height is not None or output.seen_waiting or output.block is None:
        return False
    return output.block.mined_at < invoice.created_at


def _settling(
    invoice: Invoice, deep: Sequence[Output], needed_sats: int
) -> list[Output]:
    """The outputs that pay the invoice: in the chain's order, until the sum is reached."""
    if invoice.status != InvoiceStatus.OPEN:
        return [output for output in deep if output.settles]
    before_sats = accumulate((output.amount_sats for output in deep), initial=0)
    return [
        output
        for output, sats in zip(deep, before_sats, strict=False)
        if sats < needed_sats
    ]


def _receipts(
    invoice: Invoice, deep: Sequence[Output], settling: Sequence[Output], now: datetime
) -> tuple[Receipt, ...]:
    """A receipt for each transaction, in the chain's order."""
    settling_txids = {output.txid for output in settling}
    by_txid: dict[str, list[Output]] = {}
    for output in deep:
        by_txid.setdefault(output.txid, []).append(output)
    return tuple(
        Receipt(
            txid=txid,
            amount_sats=_sum(outputs),
            block=block,
            received_at=_receipt_time(outputs[0], invoice, now),
            settles=txid in settling_txids,
            may_be_older=any(may_be_older(output, invoice) for output in outputs),
            is_older=was_known(outputs[0], invoice),
        )
        for txid, outputs in by_txid.items()
        if (block := outputs[0].block)
    )


def _depth(output: Output, tip_height: int) -> int:
    """Confirmations; 0 for a waiting output, and for one whose block is above the tip."""
    if output.block:
        return max(0, tip_height - output.block.height + 1)
    return 0


def is_deep(output: Output, tip_height: int, rules: Rules) -> bool:
    """True where the output has enough confirmations to become a payment."""
    needed = (
        max(rules.confirmations, COINBASE_MATURITY)
        if output.coinbase
        else rules.confirmations
    )
    return _depth(output, tip_height) >= needed


def _chain_order(output: Output) -> tuple[int, int, str, int]:
    height = output.block.height if output.block else 0
    return (height, output.position or 0, output.txid, output.vout)


def _receipt_time(output: Output, invoice: Invoice, now: datetime) -> datetime:
    """The block's time, not before the invoice's creation, not after now."""
    mined_at = output.block.mined_at if output.block else now
    return min(max(mined_at, invoice.created_at), now)


def reason_why(
    status: InvoiceStatus,
    counting: Sequence[Output],
    outputs: Sequence[Output],
    confirmed_sats: int,
    needed_sats: int,
    rules: Rules,
) -> str:
    """The sentence; `counting`: the outputs that count towards the amount."""
    received_sats = _sum(counting)
    if status == InvoiceStatus.PAID:
        return (
            f"paid: {confirmed_sats} satoshis confirmed, {needed_sats} were asked for"
        )
    if status == InvoiceStatus.CANCELED:
        return "canceled: what still comes is a payment without invoice"
    if status == InvoiceStatus.EXPIRED and received_sats >= needed_sats:
        return (
            "expired: too little was seen when it ended;"
            f" {received_sats} satoshis came after all"
        )
    if status == InvoiceStatus.EXPIRED:
        return f"expired: {received_sats} of {needed_sats} satoshis came in time"
    if not outputs:
        return "open: nothing has been seen at the address"
    if all(output.vanished_at for output in outputs):
        return "open: what was seen has vanished"
    if not counting:
        return "open: what was seen came before the invoice was made, or after its end"
    if received_sats < needed_sats:
        return f"open: {needed_sats - received_sats} satoshis are missing, {received_sats} came"
    return (
        f"open: enough was seen, {confirmed_sats} of {needed_sats} satoshis have"
        f" {confirmations_text(rules.confirmations)}"
    )


def confirmations_text(count: int) -> str:
    return f"{count} confirmation{'' if count == 1 else 's'}"
