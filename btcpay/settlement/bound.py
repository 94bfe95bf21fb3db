"""The sightings of an invoice that are kept: a bound on what a liar can invent. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from btcpay.settlement.values import Output

MOST_KEPT = 100  # that wait, and as many that have vanished lately
# After so long a vanished output is history alone: nobody looks for its replacement any more.
HISTORY_AFTER = timedelta(hours=1)


def bounded(outputs: Sequence[Output], amount_sats: int) -> list[Output]:
    """All that is in a block, and the first sightings by this order.

    1. Those whose amount matters: whoever fills all places with such has paid the invoice.
    2. Those that were seen first: what is invented later pushes nothing out.
    3. Of one look those that come nearest to what is asked for.
    """

    def order(output: Output) -> tuple[bool, datetime, int]:
        matters = output.amount_sats * MOST_KEPT >= amount_sats
        return not matters, output.first_seen_at, abs(output.amount_sats - amount_sats)

    seen = sorted((output for output in outputs if not output.block), key=order)
    waiting = [output for output in seen if not output.vanished][:MOST_KEPT]
    vanished = [output for output in seen if output.vanished][:MOST_KEPT]
    kept = {output.outpoint for output in (*waiting, *vanished)}
    return [output for output in outputs if output.block or output.outpoint in kept]
