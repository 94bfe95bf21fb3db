"""Who waits for a look at an address, and why: payers, deadlines, money on its way. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from btcpay.settlement import COINBASE_MATURITY

# A page notes once a minute that somebody looks at it: with less, a run in between would miss it.
ASKED_LATELY = timedelta(minutes=2)
# One look just before the deadline sees in time what is in the mempool: runs come once a minute.
BEFORE_DEADLINE = timedelta(seconds=90)
# However urgent: cron's minute, and what a run may begin too early.
LOOK_AGAIN = timedelta(seconds=50)
# Between blocks waiting money can only be replaced or joined by more; an explorer without proofs
# today may have them then.
MONEY_AGAIN = timedelta(minutes=10)
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
    """What the schedule knows of an address; `since` is when its age began.

    `looks` counts the looks so far; `is_covered`: what waits is enough, so that only a block can
    be news. `failures` are looks in a row, those that a process did not survive (`unended`) too.
    """

    id: str
    status: str
    since: datetime
    checked_at: datetime | None = None
    asked_at: datetime | None = None
    expires_at: datetime | None = None
    failed_at: datetime | None = None
    failures: int = 0
    doubted: bool = False
    has_history: bool = False
    is_covered: bool = False
    waiting: Sequence[Waiting] = ()
    confirmations: int = 1
    looks: int = 0
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
    """Why an address must be looked at now, as a sentence's end, and how often that may be."""

    reason: str
    every: timedelta


PASSED = Urgency("its deadline has passed", timedelta())
NEAR = Urgency("its deadline is near", timedelta())
MONEY = Urgency("money is on its way", MONEY_AGAIN)
PAGE = Urgency("somebody is looking at its page", timedelta(minutes=1))


def urgency(watched: Watched, tip: Tip, now: datetime) -> Urgency | None:
    """Why this address must be looked at now; None when it has its turn.

    Only open invoices: what comes to a finished one is found in its turn, and a page of one that is
    asked for again and again must not take the calls of those who are about to pay.
    """
    if watched.status != "open" or is_resting(watched, now):
        return None
    if reason := _deadline(watched, now):
        return reason
    if watched.checked_at and now - watched.checked_at < LOOK_AGAIN:
        return None
    if (watched.waiting or watched.doubted) and _has_news(watched, tip, now):
        return MONEY
    is_asked = watched.asked_at is not None and now - watched.asked_at <= ASKED_LATELY
    if is_asked and not watched.is_covered:
        return PAGE
    return None


def is_resting(watched: Watched, now: datetime) -> bool:
    """Whether looks have failed so often that the next must wait: from the third on, doubled."""
    if watched.failed_at is None or watched.failures < PATIENCE:
        return False
    rest = min(FIRST_REST * 2 ** min(watched.failures - PATIENCE, 10), LONGEST_REST)
    return now - watched.failed_at < rest


def _deadline(watched: Watched, now: datetime) -> Urgency | None:
    if watched.expires_at is None:
        return None
    checked_at = watched.checked_at or watched.since
    if now >= watched.expires_at:
        # Afterwards it is only open because money waits, or because a look missed some.
        return PASSED if checked_at < watched.expires_at or not watched.waiting else None
    return NEAR if checked_at < watched.expires_at - BEFORE_DEADLINE <= now else None


def _has_news(watched: Watched, tip: Tip, now: datetime) -> bool:
    """Whether a block, or much time, has come since the last look; depth alone needs no look."""
    heights = [output.ready_height for output in watched.waiting]
    if heights and not watched.doubted and all(h is not None and h > tip.height for h in heights):
        return False
    checked_at = watched.checked_at
    return checked_at is None or checked_at < tip.seen_at or now - checked_at >= MONEY_AGAIN
