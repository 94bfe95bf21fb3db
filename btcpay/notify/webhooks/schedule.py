"""When a delivery is tried again, and when an endpoint is given up. Pure."""

import secrets
from datetime import datetime, timedelta

# After each failure, from the specification's example: three days in all.
PAUSES = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
# Up to a tenth more, so that what failed together does not come again together.
JITTER_PERMILLE = 100
DISABLED_AFTER = timedelta(days=5)
GONE = 410


def next_try(attempts: int, now: datetime, permille: int | None = None) -> datetime | None:
    """When it is tried again after so many failures; None: it is given up.

    `permille` of the pause is added, 0 to JITTER_PERMILLE, at random unless it is named.
    """
    if attempts > len(PAUSES):
        return None
    part = secrets.randbelow(JITTER_PERMILLE + 1) if permille is None else permille
    pause = PAUSES[attempts - 1]
    return now + pause + pause * part // 1000


def why_disabled(status: int | None, failing_since: datetime, now: datetime) -> str | None:
    """Why an endpoint is told no more after a failure; None while it is."""
    if status == GONE:
        return "it answered 410 Gone"
    if now - failing_since >= DISABLED_AFTER:
        return f"nothing could be delivered for {DISABLED_AFTER.days} days"
    return None
