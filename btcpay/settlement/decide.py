"""Settlement: facts about an address and the invoice in, what follows from them out. Pure.

API, pages, command line and the cron run share `decide`; the rules are in docs/settlement.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from btcpay.settlement.reasons import reason_why
from btcpay.settlement.values import Invoice, Output, Receipt, Rules, SeenOutput, Verdict

BLOCK_TIME_SLACK = timedelta(hours=2)  # how far a block's time may be off, both ways
COINBASE_MATURITY = 100  # Bitcoin Core, consensus/consensus.h: unspendable before


def required_sats(amount_sats: int, tolerance_percent: Decimal) -> int:
    """The least sum that pays: the amount less the tolerance, rounded up to a whole satoshi."""
    forgiven = Decimal(amount_sats) * tolerance_percent / 100
    return amount_sats - int(forgiven)


def merge(known: Sequence[Output], seen: Iterable[SeenOutput], now: datetime) -> list[Output]:
    """What we know after a complete look at the address.

    1. What is seen for the first time was first seen `now`; nothing was seen later than that, so
       that a clock which was ahead makes nothing late once it is set right.
    2. A payment stands as it is: only positive evidence of a reorganisation undoes it.
    3. What waited or was only said to be confirmed, and is not shown now, has vanished.
    4. What was proven to be in a block and is not shown now, or in no block, is doubted: only
       evidence undoes it, or another block that is proven.
    """
    fresh = {(output.txid, output.vout): output for output in seen}
    merged = [_after_look(output, fresh.pop((output.txid, output.vout), None)) for output in known]
    return [replace(o, first_seen_at=min(o.first_seen_at, now)) for o in merged] + [
        Output(
            txid=output.txid,
            vout=output.vout,
            amount_sats=output.amount_sats,
            first_seen_at=now,
            block=output.block,
            spent_height=output.spent_height,
            seen_waiting=output.block is None,
        )
        for output in fresh.values()
    ]


def _after_look(output: Output, seen: SeenOutput | None) -> Output:
    if seen and output.credited:
        return replace(output, spent_height=seen.spent_height)
    if seen and output.proven and seen.block is None:
        return replace(output, doubted=True)
    if seen:
        is_there_still = output.block == seen.block
        return replace(
            output,
            first_seen_at=_first_seen_at(output, seen),
            amount_sats=seen.amount_sats,
            coinbase=output.coinbase and output.proven and is_there_still,
            proven=output.proven and is_there_still,
            position=output.position if is_there_still else None,
            block=seen.block,
            spent_height=seen.spent_height,
            vanished=False,
            doubted=False,
        )
    if output.credited:
        return output
    if output.proven:
        return replace(output, doubted=True)
    return replace(output, block=None, vanished=True)


def _first_seen_at(output: Output, seen: SeenOutput) -> datetime:
    """Not after the time of a block that was proven: a reorganisation makes nothing late."""
    if output.proven and output.block and output.block != seen.block:
        return min(output.first_seen_at, output.block.mined_at)
    return output.first_seen_at


def decide(
    invoice: Invoice,
    outputs: Sequence[Output],
    tip_height: int,
    looked_at: datetime | None,
    rules: Rules,
    now: datetime,
) -> Verdict:
    """What follows from the facts.

    1. An output counts for an invoice while it was in time: seen before `expires_at`, or in a
       block whose time is before it.
    2. Confirmed outputs, deep enough for this invoice, become payments: in the chain's order
       they settle the invoice until the sum is reached; what comes later, late or after the end
       is a payment of its own.
    3. The invoice is paid when the sum is reached, by the transaction that completes it.
    4. It is expired when a look made after `expires_at` shows too little in time, waiting
       transactions included.

    `tip_height` is the height of the best block known; `looked_at` when the last complete look
    at the address began, None when there was none.
    """
    needed_sats = required_sats(invoice.amount_sats, rules.tolerance_percent)
    alive = sorted((output for output in outputs if not output.vanished), key=_chain_order)
    deep = [output for output in alive if output.credited or _is_deep(output, tip_height, rules)]
    counting = [output for output in alive if _counts(output, invoice)]
    both = set(deep) & set(counting)
    received_sats, confirmed_sats = _sum(counting), _sum(both)
    settling = _settling(invoice, [output for output in deep if output in both], needed_sats)
    status, tx_hash, paid_at = invoice.status, invoice.tx_hash, invoice.paid_at
    if status == "open" and confirmed_sats >= needed_sats:
        status, tx_hash = "paid", settling[-1].txid
        paid_at = _receipt_time(settling[-1], invoice, now)
    elif status == "open" and _is_over(invoice, looked_at) and received_sats < needed_sats:
        status = "expired"
    paid = status == "paid"
    enough = paid or received_sats >= needed_sats
    return Verdict(
        status=status,
        tx_hash=tx_hash,
        paid_at=paid_at,
        receipts=_receipts(invoice, deep, settling if paid else [], now),
        received_sats=received_sats,
        unconfirmed_sats=received_sats - confirmed_sats,
        missing_sats=0 if enough else invoice.amount_sats - received_sats,
        confirmations=min((_depth(output, tip_height) for output in counting), default=0),
        reason=reason_why(status, counting, outputs, confirmed_sats, needed_sats, rules),
    )


def _sum(outputs: Iterable[Output]) -> int:
    return sum(output.amount_sats for output in outputs)


def _is_over(invoice: Invoice, looked_at: datetime | None) -> bool:
    return (
        invoice.expires_at is not None and looked_at is not None and looked_at >= invoice.expires_at
    )


def _counts(output: Output, invoice: Invoice) -> bool:
    """For a paid invoice what settled it; for any other what came in time.

    Money from before the invoice is no answer to it: its address was used before. What we saw
    waiting is: there only the clock was ahead when the invoice was made.
    """
    if invoice.status == "paid":
        return output.settles
    earliest = invoice.created_at - BLOCK_TIME_SLACK
    if output.block and not output.seen_waiting and output.block.mined_at < earliest:
        return False
    if invoice.expires_at is None or output.first_seen_at < invoice.expires_at:
        return True
    return output.block is not None and output.block.mined_at < invoice.expires_at


def _settling(invoice: Invoice, deep: list[Output], needed_sats: int) -> list[Output]:
    """The outputs that pay the invoice: in the chain's order, until the sum is reached."""
    if invoice.status != "open":
        return [output for output in deep if output.settles]
    settling: list[Output] = []
    sum_sats = 0
    for output in deep:
        if sum_sats >= needed_sats:
            break
        settling.append(output)
        sum_sats += output.amount_sats
    return settling


def _receipts(
    invoice: Invoice, deep: list[Output], settling: list[Output], now: datetime
) -> tuple[Receipt, ...]:
    """One for each transaction, in the chain's order."""
    settling_txids = {output.txid for output in settling}
    by_txid: dict[str, list[Output]] = {}
    for output in deep:
        by_txid.setdefault(output.txid, []).append(output)
    return tuple(
        Receipt(
            txid=txid,
            amount_sats=_sum(outputs),
            mined_at=outputs[0].block.mined_at if outputs[0].block else now,
            received_at=_receipt_time(outputs[0], invoice, now),
            settles=txid in settling_txids,
        )
        for txid, outputs in by_txid.items()
    )


def _depth(output: Output, tip_height: int) -> int:
    """Confirmations; 0 while unconfirmed, and when the tip was asked before the block came."""
    return max(0, tip_height - output.block.height + 1) if output.block else 0


def _is_deep(output: Output, tip_height: int, rules: Rules) -> bool:
    needed = max(rules.confirmations, COINBASE_MATURITY) if output.coinbase else rules.confirmations
    return not output.doubted and _depth(output, tip_height) >= needed


def _chain_order(output: Output) -> tuple[int, int, str, int]:
    height = output.block.height if output.block else 0
    return (height, output.position or 0, output.txid, output.vout)


def _receipt_time(output: Output, invoice: Invoice, now: datetime) -> datetime:
    """The block's time, not before the invoice's creation, not after now."""
    mined_at = output.block.mined_at if output.block else now
    return min(max(mined_at, invoice.created_at), now)
