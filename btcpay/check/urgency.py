"""Which addresses must be scanned now, and why: payers, deadlines, money on its way. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from btcpay.settlement.decide import COINBASE_MATURITY

# A page notes once a minute that somebody looks at it: a run between two notes must not miss it.
ASKED_LATELY = timedelta(minutes=2)
# After a page is opened its address is scanned after 1, 2 and 4 minutes, then every four minutes:
# so a payment is seen within five. If nothing came for an hour it waits for its turn like others.
FIRST_PAUSE, LONGEST_PAUSE, VIGIL = timedelta(minutes=1), timedelta(minutes=4), timedelta(hours=1)
# A scan just before the deadline sees in time what is in the mempool: runs come once a minute.
BEFORE_DEADLINE = timedelta(seconds=90)
# At least so long between two scans, however urgent: cron's minute, less what a run may be early.
SCAN_AGAIN = timedelta(seconds=50)
# Between blocks waiting money can only be replaced or joined by more; an explorer without proofs
# today may have them then.
MONEY_AGAIN = timedelta(minutes=10)
# Money that has waited for hours is scanned for less often: many outputs that never confirm would
# use up all calls.
MONEY_PART, MONEY_AT_MOST = 8, timedelta(hours=1)
JITTER = timedelta(seconds=10)  # cron is not exact
# An explorer that cannot answer for one address must not be asked for it in every run.
PATIENCE = 3
FIRST_REST, LONGEST_REST = timedelta(minutes=1), timedelta(hours=1)


@dataclass(frozen=True)
class Waiting:
    """An output that is no payment yet; `ready_height`: the tip at which it may become one.

    None while it is in no proven block.
    """

    ready_height: int | None


@dataclass(frozen=True)
class Watched:
    """What the plan knows of an address; `since` is when its age began.

    `asked_since` is when somebody opened its page, `came_at` when money was last seen to come.
    `scans` counts the scans so far; `is_covered`: what waits is enough, so that only a block can
    be news. `failures` counts failed scans in a row, with those that killed their process
    (`unended`).
    """

    id: str
    status: str
    since: datetime
    checked_at: datetime | None = None
    asked_at: datetime | None = None
    asked_since: datetime | None = None
    came_at: datetime | None = None
    expires_at: datetime | None = None
    failed_at: datetime | None = None
    failures: int = 0
    doubted: bool = False
    has_history: bool = False
    is_covered: bool = False
    waiting: Sequence[Waiting] = ()
    confirmations: int = 1
    scans: int = 0
    unended: int = 0


@dataclass(frozen=True)
class Tip:
    """The best block's height, and when we first saw it there."""

    height: int
    seen_at: datetime


def ready_height(block_height: int, coinbase: bool, confirmations: int) -> int:
    """The tip's height at which an output of this block counts."""
    return block_height - 1 + (max(confirmations, COINBASE_MATURITY) if coinbase else confirmations)


class Urgency(NamedTuple):
    """Why an address must be scanned now, as the end of a sentence; lower places come first."""

    reason: str
    place: int


NEAR = Urgency("its deadline is near", 0)
MONEY = Urgency("money is on its way", 1)
PASSED = Urgency("its deadline has passed", 2)
OPENED = Urgency("somebody has opened its page", 3)
PAGE = Urgency("somebody is looking at its page", 4)
PART = Urgency("a part of the money is on its way", 4)


def urgency(watched: Watched, tip: Tip, now: datetime) -> Urgency | None:
    """Why this address must be scanned now; None when it waits for its turn.

    Only open invoices are urgent. What comes to a finished one is found in its turn: whoever keeps
    its page open must not use up the calls of those who are about to pay.
    """
    if watched.status != "open" or is_resting(watched, now):
        return None
    if reason := _deadline(watched, now):
        return reason
    if watched.checked_at and now - watched.checked_at < SCAN_AGAIN:
        return None
    if (watched.waiting or watched.doubted) and _has_news(watched, tip, now):
        return MONEY if watched.is_covered or not watched.waiting else PART
    if is_vigil(watched, now):
        if watched.checked_at is None or watched.checked_at < began(watched):
            return OPENED
        if now - watched.checked_at + JITTER >= _pause(watched, watched.checked_at, now):
            return PAGE
    return None


def began(watched: Watched) -> datetime:
    """When the present wait began: a page was opened, or money came."""
    return max(filter(None, (watched.asked_since, watched.came_at)), default=watched.since)


def is_vigil(watched: Watched, now: datetime) -> bool:
    """Whether its page was opened, or money came, within the hour, and more is asked for."""
    is_open = watched.status == "open" and not watched.is_covered
    return is_open and watched.asked_since is not None and now - began(watched) <= VIGIL


def is_asked(watched: Watched, now: datetime) -> bool:
    """Whether the page of an open invoice is open at this moment, since whenever."""
    asked = watched.asked_at is not None and now - watched.asked_at <= ASKED_LATELY
    return watched.status == "open" and asked and not watched.is_covered


def _pause(watched: Watched, checked_at: datetime, now: datetime) -> timedelta:
    """As long as the page had been open at the last scan; after that, as it has been closed."""
    pause = min(max(checked_at - began(watched), FIRST_PAUSE), LONGEST_PAUSE)
    closed = timedelta() if is_asked(watched, now) else now - (watched.asked_at or now)
    return max(pause, closed)


def is_resting(watched: Watched, now: datetime) -> bool:
    """Whether so many scans failed that the next must wait: from the third on, doubling."""
    if watched.failed_at is None or watched.failures < PATIENCE:
        return False
    rest = min(FIRST_REST * 2 ** min(watched.failures - PATIENCE, 10), LONGEST_REST)
    return now - watched.failed_at < rest


def _deadline(watched: Watched, now: datetime) -> Urgency | None:
    if watched.expires_at is None:
        return None
    checked_at = watched.checked_at or watched.since
    if now >= watched.expires_at:
        # Afterwards it is only open because money waits, or because a scan missed some.
        return PASSED if checked_at < watched.expires_at or not watched.waiting else None
    return NEAR if checked_at < watched.expires_at - BEFORE_DEADLINE <= now else None


def _has_news(watched: Watched, tip: Tip, now: datetime) -> bool:
    """Whether a block came, or much time passed, since the last scan; depth alone needs no scan."""
    heights = [output.ready_height for output in watched.waiting]
    if heights and not watched.doubted and all(h is not None and h > tip.height for h in heights):
        return False
    checked_at = watched.checked_at
    if checked_at is None:
        return True
    is_ready = any(h is not None and h <= tip.height for h in heights) and not watched.doubted
    age = now - (watched.came_at or checked_at)
    if not is_ready and now - checked_at < min(age / MONEY_PART, MONEY_AT_MOST):
        return False
    return checked_at < tip.seen_at or now - checked_at >= MONEY_AGAIN
