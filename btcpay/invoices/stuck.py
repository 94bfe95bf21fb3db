"""Finds payments that have waited for a block for a long time."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from btcpay.values.times import to_ms
from storage.models import Output

HOUR_MS = 3_600_000
# Six blocks are mined in this time on average. A payment with a usual fee needs fewer.
STUCK_AFTER_MS = HOUR_MS


class Stuck(NamedTuple):
    """How long an invoice's oldest unconfirmed payment has waited for a block.

    `hours` are whole hours. `feerate` is the payment's fee in satoshis per 1,000 vbytes;
    None if it is unknown.
    """

    hours: int
    feerate: int | None


def stuck_of(waiting: Iterable[Output], now: datetime) -> Stuck | None:
    """Returns how long the oldest of an invoice's unconfirmed outputs has waited.

    `waiting` are these outputs. Returns None if there are none, or if all of them have
    waited for less than STUCK_AFTER_MS.
    """
    oldest = min(waiting, key=lambda output: output.first_seen_ms, default=None)
    if oldest is None:
        return None
    waited_ms = to_ms(now) - oldest.first_seen_ms
    if waited_ms < STUCK_AFTER_MS:
        return None
    return Stuck(waited_ms // HOUR_MS, oldest.feerate)
