"""Tells which payments have waited for a block for a long time."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from btcpay.values.times import to_ms
from storage.models import Output

# Six blocks are mined in this time on average. A payment with a usual fee needs fewer.
STUCK_AFTER_MS = 3_600_000
HOUR_MS = 3_600_000


class Stuck(NamedTuple):
    """The unconfirmed payment of an invoice that has waited longest.

    `hours`: how long, in whole hours. `feerate`: in satoshis per 1,000 vbytes; None if
    no explorer said it.
    """

    hours: int
    feerate: int | None


def stuck_of(waiting: Iterable[Output], now: datetime) -> Stuck | None:
    """Returns None if none of the unconfirmed outputs has waited for STUCK_AFTER_MS."""
    oldest = min(waiting, key=lambda output: output.first_seen_ms, default=None)
    if oldest is None:
        return None
    waited_ms = to_ms(now) - oldest.first_seen_ms
    if waited_ms < STUCK_AFTER_MS:
        return None
    return Stuck(waited_ms // HOUR_MS, oldest.feerate)
