"""Computes the times that an invoice's page shows, such as its countdown."""

import math
from typing import Any

from btcpay.checkout.snapshot import Snapshot
from btcpay.values.statuses import CheckoutState
from btcpay.values.times import to_ms

LONG_AGO_MS = 10 * 60_000  # a check that runs every minute has missed many runs by then
COUNTDOWN_MS = 5 * 60_000  # the time left with which the countdown begins
# An invoice is new for this time. A check that runs every minute has run by then. pages.js has the
# same value.
PATIENCE_MS = 2 * 60_000


def times_of(snapshot: Snapshot, is_payable: bool) -> dict[str, Any]:
    """Returns the values that depend on the current time.

    `is_payable` is True if the page asks for a payment. The values are:

    - `left_ms`: the time until the invoice expires; None if it never does.
    - `life_ms`: the time from its creation to its expiry; None if it never expires.
    - `countdown`: the minutes and seconds left, such as `4:59`, rounded up to a second.
    - `ring_percent`: how much of the ring is drawn. The ring shows the time that is left,
      or the confirmations.
    - `checked_ago_ms`: the time since payments were last looked for; None if they never
      were.
    - `is_unwatched`: True if that is so long ago that the page must say so.
    - `is_new`: True if the invoice is so new that no check may have run yet.
    """
    row = snapshot.row
    now_ms = to_ms(snapshot.now)
    left_ms = snapshot.left_ms
    left_s = math.ceil(max(0, left_ms or 0) / 1000)
    minutes, seconds = divmod(left_s, 60)
    life_ms = None
    if row.expires_ms is not None:
        life_ms = row.expires_ms - row.created_ms
    checked_ago_ms = None
    if row.checked_ms is not None:
        checked_ago_ms = now_ms - row.checked_ms
    return {
        "left_ms": left_ms,
        "life_ms": life_ms,
        "counts_down": left_ms is not None and left_ms < COUNTDOWN_MS,
        "countdown": f"{minutes}:{seconds:02d}",
        "countdown_ms": COUNTDOWN_MS,
        "ring_percent": _ring_percent(snapshot, is_payable, life_ms),
        "checked_ago_ms": checked_ago_ms,
        "is_unwatched": checked_ago_ms is not None and checked_ago_ms > LONG_AGO_MS,
        "long_ago_ms": LONG_AGO_MS,
        "is_new": now_ms - row.created_ms < PATIENCE_MS,
    }


def _ring_percent(snapshot: Snapshot, is_payable: bool, life_ms: int | None) -> int:
    """Returns how much of the ring is drawn, in percent.

    `is_payable` is True if the page asks for a payment. `life_ms` is the time from the
    invoice's creation to its expiry; None if it never expires.
    """
    if snapshot.state == CheckoutState.SEEN:
        confirmations = min(snapshot.confirmations, snapshot.confirmations_needed)
        return 100 * confirmations // snapshot.confirmations_needed
    if not is_payable:
        return 0
    if not life_ms:
        return 100
    return 100 * max(0, snapshot.left_ms or 0) // life_ms
