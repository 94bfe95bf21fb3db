"""The sightings of an invoice that are kept: a bound on what a liar can invent. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from btcpay.settlement.values import Output

MOST_KEPT = 100  # outputs that wait, and as many that have vanished lately
# From then on a vanished output is history alone: its replacement is not looked for.
HISTORY_AFTER = timedelta(hours=1)


def bounded(outputs: Sequence[Output], amount_sats: int) -> list[Output]:
    """All outputs that are in a block, and the first of the others in this order.

    1. Outputs of at least a hundredth of the amount: to fill all places with these is to pay it.
    2. Outputs that were seen earlier: later inventions push none of them out.
    3. Of those seen at the same time, the nearest to the amount.
    """

    def order(output: Output) -> tuple[bool, datetime, int]:
        matters = output.amount_sats * MOST_KEPT >= amount_sats
        return not matters, output.first_seen_at, abs(output.amount_sats - amount_sats)

    seen = sorted((output for output in outputs if not output.block), key=order)
    waiting = [output for output in seen if not output.vanished][:MOST_KEPT]
    vanished = [output for output in seen if output.vanished][:MOST_KEPT]
    kept = {output.outpoint for output in (*waiting, *vanished)}
    return [output for output in outputs if output.block or output.outpoint in kept]
