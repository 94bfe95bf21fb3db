"""Whether an output came in time for an invoice, or is older than the invoice. Pure."""

from datetime import timedelta

from btcpay.settlement.values import Invoice, Output

# A block's time may be wrong by this much, in both directions.
BLOCK_TIME_SLACK = timedelta(hours=2)


def came_in_time(output: Output, invoice: Invoice) -> bool:
    """True if we or a block had it before the invoice's end, and not before it was made."""
    if is_older(output, invoice):
        return False
    if invoice.expires_at is None or output.first_seen_at < invoice.expires_at:
        return True
    return output.block is not None and output.block.mined_at < invoice.expires_at


def is_older(output: Output, invoice: Invoice) -> bool:
    """True if the output is from before the invoice was made: its address was used before.

    1. A block whose header we had by then is older, whatever its time says.
    2. We learned of the other blocks later, and only their times say how old they are. They are
       older if their time is earlier by more than the slack. An output that we saw waiting is not
       older, whatever its block's time: our clock was ahead when the invoice was made.
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
    """True if no header was known when the invoice was made, and its block's time is earlier."""
    if invoice.above_height is not None or output.seen_waiting or output.block is None:
        return False
    return output.block.mined_at < invoice.created_at
