"""For whom the mempool is asked now, and why: payers, deadlines, money on its way. Pure.

What a block confirms is found in the block. The mempool says sooner what comes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from btcpay.chain.explorers.quota import Allowance

# A page notes once a minute that somebody looks at it: a run between two notes must not miss it.
ASKED_LATELY = timedelta(minutes=2)
# After a page is opened, after 1, 2 and 4 minutes, then every four minutes for an hour; after that
# less and less often. So a payment is seen within five minutes.
FIRST_PAUSE, LONGEST_PAUSE, SLOWER = timedelta(minutes=1), timedelta(minutes=4), 15
VIGIL, LONGEST_SLOW_PAUSE = timedelta(hours=1), timedelta(hours=1)
# Once its page is closed an invoice is looked for once more, unless that is so long ago.
CLOSED_LATELY = timedelta(hours=1)
# A look just before the deadline sees in time what is in the mempool: runs come once a minute.
BEFORE_DEADLINE = timedelta(seconds=90)
# At least so long between two looks, however urgent: cron's minute, less what a run may be early.
AGAIN = timedelta(seconds=50)
# An explorer that allows so much is one's own: open pages and money are looked for in every run.
OWN_PER_HOUR = 10_000
# Money that waits can only be replaced, joined or dropped; what waits for hours does so for days.
MONEY_PART, MONEY_FIRST, MONEY_LAST = 8, timedelta(minutes=10), timedelta(hours=1)
JITTER = timedelta(seconds=10)  # cron is not exact
# An explorer that cannot answer for one address must not be asked for it in every run.
PATIENCE = 3
FIRST_REST, LONGEST_REST = timedelta(minutes=1), timedelta(hours=1)
# A payment is shown on its page within this time.
SEEN_WITHIN = timedelta(minutes=5)
# See `shares`.
KEPT_CALLS, KEPT_PART, AT_ONCE_PART, LEAST = 80, 4, 4, 2


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
        elif near_at <= now < watched.expires_at and (last is None or last < near_at):
            return Urgency(Reason.ENDING, near_at)
    if last and now - last < AGAIN and not pace.is_own:
        return None
    if watched.came_at:
        pause = timedelta() if pace.is_own else _money_pause(watched, now)
        due_at = _after(last, watched.came_at, pause)
        if now + JITTER >= due_at:
            return Urgency(Reason.MONEY, due_at)
    if watched.status == "open" and watched.asked_since and not watched.is_covered:
        is_open = watched.asked_at is not None and now - watched.asked_at <= ASKED_LATELY
        pause = timedelta() if pace.is_own and is_open else _page_pause(watched, now)
        due_at = _after(last, watched.asked_since, pause)
        if now + JITTER >= due_at and now - (watched.asked_at or now) <= CLOSED_LATELY:
            return Urgency(Reason.PAGE, due_at)
    return None


def _after(last: datetime | None, since: datetime, pause: timedelta) -> datetime:
    """At once when nobody has looked since then."""
    return since if last is None or last < since else last + pause


def _money_pause(watched: Watched, now: datetime) -> timedelta:
    age = now - (watched.came_at or now)
    return min(max(age / MONEY_PART, MONEY_FIRST), MONEY_LAST)


def _page_pause(watched: Watched, now: datetime) -> timedelta:
    """As long as the page had been open at the last look; after that, as it has been closed."""
    if watched.asked_since is None or watched.asked_at is None or watched.checked_at is None:
        return FIRST_PAUSE
    open_for = watched.checked_at - watched.asked_since
    pause = min(max(open_for, FIRST_PAUSE), LONGEST_PAUSE)
    pause = max(pause, min(open_for / SLOWER, LONGEST_SLOW_PAUSE))
    closed = now - watched.asked_at
    return max(pause, closed) if closed > ASKED_LATELY else pause


def _is_resting(watched: Watched, now: datetime) -> bool:
    """Whether so many looks failed that the next must wait: from the third on, doubling."""
    if watched.failed_at is None or watched.failures < PATIENCE:
        return False
    rest = min(FIRST_REST * 2 ** min(watched.failures - PATIENCE, 10), LONGEST_REST)
    return now - watched.failed_at < rest


class Plan(NamedTuple):
    """`ids`: whom the mempool is asked for, in order; `unreached`: who waits too long for calls.

    `put_off`: how many others wait for the next run.
    """

    ids: list[str]
    unreached: list[str]
    put_off: int


def plan(
    watched: Iterable[Watched], gone_after: timedelta, allowance: Allowance, now: datetime
) -> Plan:
    """Whom this run asks for, within its part of the calls.

    1. Deadlines, money, and pages that were just opened: the longest wait first.
    2. Pages that stay open: so many in each minute of the hour. One that has been open for twice as
       long counts four times less, and those that have been open for more than an hour come last.
       So a page that was opened after hundreds of others is served before them.
    """
    pace = pace_of(gone_after, allowance.per_hour)
    known = [(one, found) for one in watched if (found := urgency(one, pace, now))]
    at_once = [(one, due) for one, due in known if not _stays_open(one, due)]
    again = [(one, due) for one, due in known if _stays_open(one, due)]
    at_once.sort(key=lambda pair: pair[1].due_at)
    again.sort(key=lambda pair: _page_order(pair[0], pair[1], now))
    share = shares(allowance)
    taken = at_once[: share.at_once] + again[: share.again]
    left = at_once[share.at_once :] + again[share.again :]
    late = [one.id for one, due in left if now - due.due_at > SEEN_WITHIN]
    return Plan([one.id for one, _ in taken], late, len(left) - len(late))


def _stays_open(one: Watched, due: Urgency) -> bool:
    """Whether it is a page that was looked for since it was opened."""
    return due.reason is Reason.PAGE and due.due_at != one.asked_since


def _page_order(one: Watched, due: Urgency, now: datetime) -> tuple[bool, float]:
    open_for = max(now - (one.asked_since or one.since), FIRST_PAUSE)
    waited_s = max((now - due.due_at).total_seconds(), 1.0)
    return open_for > VIGIL, -waited_s / open_for.total_seconds() ** 2


class Shares(NamedTuple):
    """How many looks a run may make: at once, and for pages that stay open."""

    at_once: int
    again: int


def shares(allowance: Allowance) -> Shares:
    """A run's part of the hour's calls.

    Headers and blocks keep what they need for an hour, or a quarter of a small budget. Pages that
    stay open have half of the rest, the same number each minute. What comes at once has a quarter
    of what is left above that; after a pause of minutes more.
    """
    kept = min(KEPT_CALLS, allowance.per_hour // KEPT_PART)
    left = max(0, allowance.left - kept)
    paced = (allowance.per_hour - kept) // 2
    minutes = 1 if allowance.since_s is None else min(60, max(1, round(allowance.since_s / 60)))
    at_once = max((left - paced) * min(minutes, AT_ONCE_PART) // AT_ONCE_PART, min(left, LEAST))
    return Shares(at_once, min(left - at_once, max(paced * minutes // 60, LEAST)))
