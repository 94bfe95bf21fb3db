"""Decides when a delivery is tried again, and when a failing receiver is disabled."""

import secrets
from datetime import datetime, timedelta

# The times of the retries after the first attempt, as (hours, minutes). It is the example schedule
# of Standard Webhooks. After the last retry the delivery is given up.
_HOURS_MIN = (
    (0, 0),
    (0, 5),
    (0, 35),
    (2, 35),
    (7, 35),
    (17, 35),
    (31, 35),
    (51, 35),
    (75, 35),
)
OFFSETS = [
    timedelta(hours=hours, minutes=minutes, seconds=5) for hours, minutes in _HOURS_MIN
]
# Up to a tenth is added to each pause, so that deliveries that failed at the same time are not
# retried at the same time.
JITTER_PERMILLE = 100
# The pause between two tests of a failing receiver. Including the minutes between two runs of the
# outbox, a test is made at least every half hour.
PROBE_AFTER = timedelta(minutes=25)
DISABLED_AFTER = timedelta(days=5)
GONE = 410


def next_try(
    first_at: datetime,
    now: datetime,
    permille: int | None = None,
) -> datetime | None:
    """Returns the time of the next attempt; None if the delivery is given up.

    `first_at` is the time of the first attempt. The pause until the next attempt is
    lengthened by `permille` thousandths. If `permille` is None, a random number from 0
    to JITTER_PERMILLE is used.
    """
    if permille is None:
        permille = secrets.randbelow(JITTER_PERMILLE + 1)
    for offset in OFFSETS:
        scheduled_at = first_at + offset
        if scheduled_at > now:
            pause = scheduled_at - now
            return scheduled_at + pause * permille // 1000
    return None


def reason_to_disable(
    status: int | None,
    failing_since: datetime,
    now: datetime,
) -> str | None:
    """Returns the reason to disable a failing receiver; None if there is none.

    A receiver is disabled if it responds with the HTTP status 410 Gone, or if it has
    failed for DISABLED_AFTER. `status` is the HTTP status of the last failure; None if
    there was no response. `failing_since` is the time of the first failure after the
    last delivery that the receiver accepted.
    """
    if status == GONE:
        return "it answered 410 Gone"
    has_failed_too_long = now - failing_since >= DISABLED_AFTER
    if has_failed_too_long:
        return f"nothing could be delivered for {DISABLED_AFTER.days} days"
    return None
