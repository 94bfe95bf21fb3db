"""The times of a failed delivery's next tries, and the end of a dead receiver. Pure."""

import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

ATTEMPT_S = 10
# Since the first attempt, as in the specification's example; after the last it is given up.
_HOURS_MIN = ((0, 0), (0, 5), (0, 35), (2, 35), (7, 35), (17, 35), (31, 35), (51, 35), (75, 35))
OFFSETS = [timedelta(hours=hours, minutes=minutes, seconds=5) for hours, minutes in _HOURS_MIN]
# Up to a tenth of the pause more, so that what failed together does not come again together.
JITTER_PERMILLE = 100
# A receiver that fails is asked at least every half hour; checks are minutes apart.
PROBE_AFTER = timedelta(minutes=25)
DISABLED_AFTER = timedelta(days=5)
GONE = 410


class Answer(NamedTuple):
    """The outcome of an attempt; `status` is HTTP's or the program's, None when there was none.

    `text` is the answer's beginning, or the reason why there was none. Kinds of failure:
    `is_refusal`, others may be taken; `is_final`, this one never will be; `may_go_on`, the attempt
    may still be under way.
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
    """The time of the next try of a delivery first tried at `first_at`; None when it is given up.

    `permille` of the pause is added, 0 to JITTER_PERMILLE, at random unless it is named.
    """
    at = next((first_at + offset for offset in OFFSETS if first_at + offset > now), None)
    if at is None:
        return None
    part = secrets.randbelow(JITTER_PERMILLE + 1) if permille is None else permille
    return at + (at - now) * part // 1000


def why_disabled(status: int | None, failing_since: datetime, now: datetime) -> str | None:
    """The reason to disable a receiver after a failure; None to go on."""
    if status == GONE:
        return "it answered 410 Gone"
    if now - failing_since >= DISABLED_AFTER:
        return f"nothing could be delivered for {DISABLED_AFTER.days} days"
    return None
