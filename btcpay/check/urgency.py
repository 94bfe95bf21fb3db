"""For whom the mempool is asked now, and why: payers, deadlines, money on its way. Pure.

What a block confirms is found in the block. The mempool says sooner what comes.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

# A page notes each minute that somebody looks at it: a run between two notes must not miss it.
ASKED_EVERY, ASKED_LATELY = timedelta(minutes=1), timedelta(minutes=2)
# For so long a page is looked for as often as calls allow, then each fifteenth of its time.
VIGIL, SLOW, LONGEST_PAUSE = timedelta(hours=1), 15, timedelta(hours=1)
# Once its page is closed an invoice is looked for once more, unless that is so long ago.
CLOSED_LATELY = timedelta(minutes=10)
# A look just before the deadline sees in time what is in the mempool: runs come once a minute.
BEFORE_DEADLINE = timedelta(seconds=90)
# At least so long between two looks, however urgent.
AGAIN = timedelta(seconds=10)
# An explorer that allows so much is one's own: open pages and money are looked for in every run.
OWN_PER_HOUR = 10_000
# Money that waits can only be replaced, joined or dropped; what waits for hours does so for days.
MONEY_PART, MONEY_FIRST, MONEY_LAST = 8, timedelta(minutes=10), timedelta(hours=1)
JITTER = timedelta(seconds=10)  # cron is not exact
# An explorer that cannot answer for one address must not be asked for it in every run.
PATIENCE = 3
FIRST_REST, LONGEST_REST = timedelta(minutes=1), timedelta(hours=1)


@dataclass(frozen=True)
class Watched:
    """What is known of an invoice that may be looked for.

    `asked_since` is when somebody opened its page, `asked_at` when it last asked. `came_at`: when
    money that still waits was last seen to come; `is_covered`: it is enough. `vanished_at`: when
    money was last missed that may come again. `failures`: looks in a row that failed.
    """

    id: str
    status: str
    since: datetime
    checked_at: datetime | None = None
    asked_at: datetime | None = None
    asked_since: datetime | None = None
    came_at: datetime | None = None
    is_covered: bool = False
    vanished_at: datetime | None = None
    expires_at: datetime | None = None
    failures: int = 0
    failed_at: datetime | None = None


class Reason(StrEnum):
    ENDED = "its deadline has passed"
    ENDING = "its deadline is near"
    MONEY = "money is on its way"
    PAGE = "somebody is looking at its page"


class Urgency(NamedTuple):
    reason: Reason
    due_at: datetime


class Pace(NamedTuple):
    """`gone_after` as the network has it; `is_own`: calls need not be saved."""

    gone_after: timedelta
    is_own: bool = False


def pace_of(gone_after: timedelta, per_hour: int) -> Pace:
    return Pace(gone_after, per_hour >= OWN_PER_HOUR)


def urgency(watched: Watched, pace: Pace, now: datetime) -> Urgency | None:
    """Why the mempool is to be asked for this invoice now; None when it need not."""
    if _is_resting(watched, now):
        return None
    last = watched.checked_at
    if watched.status == "open" and watched.expires_at:
        near_at = watched.expires_at - BEFORE_DEADLINE
        if now >= watched.expires_at:
            again_at = watched.vanished_at and watched.vanished_at + pace.gone_after
            is_first = last is None or last < watched.expires_at
            if is_first or (not watched.came_at and (again_at is None or now >= again_at)):
                due_at = watched.expires_at if is_first else again_at or watched.expires_at
                return Urgency(Reason.ENDED, due_at)
        elif near_at <= now and watched.asked_since and (last is None or last < near_at):
            return Urgency(Reason.ENDING, near_at)
    if last and now - last < AGAIN and not pace.is_own:
        return None
    if watched.status == "open" and watched.asked_since and not watched.is_covered:
        due_at = waits_since(watched) + (timedelta() if pace.is_own else _page_pause(watched))
        if now >= due_at if is_waiting(watched, now) else _is_just_closed(watched, now):
            return Urgency(Reason.PAGE, due_at)
    if watched.came_at:
        pause = timedelta() if pace.is_own else _money_pause(watched, now)
        due_at = watched.came_at if last is None or last < watched.came_at else last + pause
        if now + JITTER >= due_at:
            return Urgency(Reason.MONEY, due_at)
    return None


def _money_pause(watched: Watched, now: datetime) -> timedelta:
    age = now - (watched.came_at or now)
    return min(max(age / MONEY_PART, MONEY_FIRST), MONEY_LAST)


def is_waiting(watched: Watched, now: datetime) -> bool:
    """Whether somebody looks at its page, and waits for money to be seen."""
    is_open = watched.asked_at is not None and now - watched.asked_at <= ASKED_LATELY
    return watched.status == "open" and is_open and not watched.is_covered


def waits_since(watched: Watched) -> datetime:
    """When somebody opened its page, or when it was last looked for since then."""
    opened_at = watched.asked_since or watched.since
    return max(opened_at, watched.checked_at or opened_at)


def _page_pause(watched: Watched) -> timedelta:
    """By the time for which the page had been open at the last look."""
    open_for = waits_since(watched) - (watched.asked_since or watched.since)
    return min(open_for / SLOW, LONGEST_PAUSE) if open_for > VIGIL else timedelta()


def _is_just_closed(watched: Watched, now: datetime) -> bool:
    """Whether nobody asks any more, and it was not looked for since somebody did."""
    asked_at = watched.asked_at or now
    return now - asked_at <= CLOSED_LATELY and waits_since(watched) <= asked_at + ASKED_EVERY


def _is_resting(watched: Watched, now: datetime) -> bool:
    """Whether so many looks failed that the next must wait: from the third on, doubling."""
    if watched.failed_at is None or watched.failures < PATIENCE:
        return False
    rest = min(FIRST_REST * 2 ** min(watched.failures - PATIENCE, 10), LONGEST_REST)
    return bool(now - watched.failed_at < rest)
