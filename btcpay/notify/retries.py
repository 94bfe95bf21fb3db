"""When a delivery that failed is tried again, and when its receiver is given up. Pure."""

import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

ATTEMPT_S = 10
# Since the first attempt, from the specification's example; then a delivery is given up.
_HOURS_MIN = ((0, 0), (0, 5), (0, 35), (2, 35), (7, 35), (17, 35), (31, 35), (51, 35), (75, 35))
OFFSETS = [timedelta(hours=hours, minutes=minutes, seconds=5) for hours, minutes in _HOURS_MIN]
# Up to a tenth of the pause more, so that what failed together does not come again together.
JITTER_PERMILLE = 100
# A receiver that fails is asked at least every half hour; checks are minutes apart.
PROBE_AFTER = timedelta(minutes=25)
DISABLED_AFTER = timedelta(days=5)
GONE = 410


class Answer(NamedTuple):
    """How an attempt went; `status` of HTTP or of the program, None when there was none.

    `text` is the answer's beginning, or why there was none. Of a failure, `is_refusal`: of this
    delivery alone, others may be taken; `is_final`: it will never be taken; `may_go_on`: the
    attempt may still be under way.
    """

    is_taken: bool
    status: int | None
    text: str
    is_refusal: bool = False
    is_final: bool = False
    may_go_on: bool = False

    @property
    def is_up(self) -> bool:
        return self.is_taken or self.is_refusal


def next_try(first_at: datetime, now: datetime, permille: int | None = None) -> datetime | None:
    """When a delivery that was first tried at `first_at` is tried again; None: it is given up.

    `permille` of the pause is added, 0 to JITTER_PERMILLE, at random unless it is named.
    """
    at = next((first_at + offset for offset in OFFSETS if first_at + offset > now), None)
    if at is None:
        return None
    part = secrets.randbelow(JITTER_PERMILLE + 1) if permille is None else permille
    return at + (at - now) * part // 1000


def why_disabled(status: int | None, failing_since: datetime, now: datetime) -> str | None:
    """Why a receiver is sent nothing more after a failure; None while it is."""
    if status == GONE:
        return "it answered 410 Gone"
    if now - failing_since >= DISABLED_AFTER:
        return f"nothing could be delivered for {DISABLED_AFTER.days} days"
    return None
