"""Limits the number of unconfirmed outputs that are stored for an address. Pure."""

from collections.abc import Sequence
from datetime import datetime

from btcpay.settlement.values import Output

# The maximum number of unconfirmed outputs, and also that of vanished outputs.
MOST_KEPT = 100


def bound_outputs(outputs: Sequence[Output], amount_sats: int) -> list[Output]:
    """Returns those of `outputs` that are stored, in the same order.

    All outputs in blocks are stored. An explorer can invent any number of unconfirmed
    and of vanished outputs, so at most MOST_KEPT of each of these two kinds are stored.
    They are chosen in this order:

    1. Outputs of at least a hundredth of the invoice's amount (`amount_sats`) come
       first. If an attacker fills all places with real outputs of this size, the
       invoice is paid.
    2. Outputs that were seen earlier come first, so that invented outputs cannot
       displace them later.
    3. If outputs were seen at the same time, those closer to the amount come first.
    """

    def order(output: Output) -> tuple[bool, datetime, int]:
        is_small = output.amount_sats * MOST_KEPT < amount_sats
        difference_sats = abs(output.amount_sats - amount_sats)
        return (is_small, output.first_seen_at, difference_sats)

    in_no_block = [output for output in outputs if not output.block]
    in_no_block.sort(key=order)
    unconfirmed = [output for output in in_no_block if not output.vanished_at]
    vanished = [output for output in in_no_block if output.vanished_at]
    chosen = [*unconfirmed[:MOST_KEPT], *vanished[:MOST_KEPT]]
    kept_outpoints = {output.outpoint for output in chosen}
    return [
        output
        for output in outputs
        if output.block or output.outpoint in kept_outpoints
    ]
