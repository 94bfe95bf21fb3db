"""Compares the time of an output with the lifetime of its invoice. Pure."""

from datetime import timedelta

from btcpay.settlement.values import Invoice, Output

# A block's time may be too early or too late by this much.
BLOCK_TIME_SLACK = timedelta(hours=2)


def came_in_time(output: Output, invoice: Invoice) -> bool:
    """True if the output was seen or mined before the invoice's deadline.

    An invoice without a deadline has no late outputs. The result is always False if the
    output is older than the invoice (`is_older`).
    """
    if is_older(output, invoice):
        return False
    if invoice.expires_at is None or output.first_seen_at < invoice.expires_at:
        return True
    return output.block is not None and output.block.mined_at < invoice.expires_at


def is_older(output: Output, invoice: Invoice) -> bool:
    """True if the output is older than the invoice, because its address was used before.

    1. An output is older if we had the header of its block when the invoice was made,
       whatever the block's time says.
    2. Otherwise it is older if its block's time is more than BLOCK_TIME_SLACK before the
       invoice was made.
    3. Rule 2 does not apply to an output that we saw unconfirmed. If its block's time is
       that early, our clock was ahead when the invoice was made.
    """
    if output.block is None:
        return False
    if was_known(output, invoice):
        return True
    if output.seen_waiting:
        return False
    return output.block.mined_at < invoice.created_at - BLOCK_TIME_SLACK


def was_known(output: Output, invoice: Invoice) -> bool:
    """True if we had the header of the output's block when the invoice was made."""
    if invoice.above_height is None or output.block is None:
        return False
    return output.block.height <= invoice.above_height


def may_be_older(output: Output, invoice: Invoice) -> bool:
    """True if the output's block may have been mined before the invoice was made.

    This is decided by the block's time, which is inexact. The result is False if there
    is better evidence: if we had any header when the invoice was made, or if we saw the
    output unconfirmed.
    """
    if output.block is None or output.seen_waiting:
        return False
    if invoice.above_height is not None:
        return False
    return output.block.mined_at < invoice.created_at
