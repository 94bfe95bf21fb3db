"""Which addresses a run looks at: those that somebody waits for, then the others in turn. Pure.

The rules, and what they come to in calls, are in docs/budget.md.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from btcpay.budget import Purse
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
FULL_AGE = timedelta(days=1)  # older invoices are all looked at equally often
PROBE_EVERY = timedelta(hours=1)
OVERHEAD = 2  # calls of a run for the tip: its height and its hash
PROOF = 6  # calls for a payment with one confirmation
FOLLOW = 3  # calls for a new tip on top of the last one
BLOCKS_PER_HOUR, MONEY_LOOKS_PER_HOUR = 6, 12
# An explorer that cannot answer for one address must not be asked for it in every run.
PATIENCE = 3
FIRST_REST, LONGEST_REST = timedelta(minutes=1), timedelta(hours=1)
LEAST_SHARE, CATCH_UP = 1 / 8, 4  # of what is left for turns: of a run at least, and an hour's run
NEWCOMERS = 1200  # calls an hour: twenty payers
TRICKLE = 20  # one in so many calls is for turns, however many payers wait


@dataclass(frozen=True)
class Waiting:
    """An output that is no payment yet; `ready_height`: the tip at which it may become one.

    None while it is in no proven block.
    """

    ready_height: int | None


@dataclass(frozen=True)
class Watched:
    """What the schedule knows of an address; `since` is when its age began.

    `is_covered`: what waits is enough, so that only a block can be news.
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


@dataclass(frozen=True)
class Tip:
    """The best block's height, and when we first saw it there."""

    height: int
    seen_at: datetime


@dataclass(frozen=True)
class Plan:
    """`looks`: ids in order; `unreached`: urgent ones beyond the budget.

    `put_off`: how many others wait for their turn; `swept`: the calls to those that have it.
    """

    looks: list[str]
    unreached: list[str]
    put_off: int
    swept: int


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


def plan(watched: Iterable[Watched], tip: Tip, purse: Purse, now: datetime) -> Plan:
    """Spends this run's share of the budget.

    1. The urgent first, the longest unseen before others, as far as the budget goes.
    2. Of the rest as many as their share allows, those first that have waited longest for their
       age. What payers may need in the rest of the hour is kept back.
    """
    urgent: list[tuple[Urgency, Watched]] = []
    turns: list[Watched] = []
    for one in watched:
        reason = urgency(one, tip, now)
        if reason:
            urgent.append((reason, one))
        elif not is_resting(one, now):
            turns.append(one)
    urgent.sort(key=lambda pair: -_lateness(pair[0], pair[1], now))
    ordered = [one for _, one in urgent]
    reached = _affordable(ordered, purse.left - OVERHEAD)
    spent = sum(_calls(one) for one in reached)
    share = min(purse.left - OVERHEAD - spent, turns_share(purse, needed_calls(urgent, purse)))
    served = _affordable(
        sorted(turns, key=lambda one: -patience(one, now)), share - (0 if reached else OVERHEAD)
    )
    swept = sum(_calls(one) for one in served) + (OVERHEAD if served and not reached else 0)
    ids = {one.id for one in reached}
    return Plan(
        looks=[one.id for one in [*reached, *served]],
        unreached=[one.id for one in ordered if one.id not in ids],
        put_off=len(turns) - len(served),
        swept=swept,
    )


def _lateness(urgency: Urgency, watched: Watched, now: datetime) -> float:
    """How many times over an urgent one has waited; a deadline comes before all others."""
    every_s = urgency.every.total_seconds()
    return _waited_s(watched, now) / every_s if every_s else math.inf


def needed_calls(urgent: Sequence[tuple[Urgency, Watched]], purse: Purse) -> int:
    """Calls that the urgent of this moment will need in an hour, the run's own included.

    Pages in every run; waiting money at every block and every ten minutes, and then its proof.
    A tenth of the budget is kept for proofs of what was not seen waiting.
    """
    pages = [one for reason, one in urgent if reason is PAGE]
    money = [one for reason, one in urgent if reason is MONEY]
    runs = _runs_per_hour(purse)
    proofs = sum(PROOF + 2 * (one.confirmations - 1) for one in money)
    looks = sum(map(_calls, pages)) * runs + sum(map(_calls, money)) * MONEY_LOOKS_PER_HOUR
    return int(runs + BLOCKS_PER_HOUR * FOLLOW + purse.per_hour / 10 + looks + proofs)


def next_look(id: str, watched: Sequence[Watched], tip: Tip, now: datetime) -> str:
    """When this address is looked at next, and why then, as a sentence."""
    found = [one for one in watched if one.id == id]
    if not found:
        return "none: its watch has ended; `btcpay check --invoice` looks all the same"
    (this,) = found
    if reason := urgency(this, tip, now):
        return f"the next check: {reason.reason}"
    if is_resting(this, now):
        return f"after a pause: {this.failures} looks in a row have failed"
    ahead = sum(
        patience(one, now) > patience(this, now) and urgency(one, tip, now) is None
        for one in watched
    )
    heights = [output.ready_height for output in this.waiting if output.ready_height is not None]
    if heights:
        return f"when block {min(heights)} is there, or in its turn: {ahead} have waited longer"
    if this.waiting:
        return f"with the next block, or in its turn: {ahead} have waited longer for their age"
    if this.status == "open" and this.expires_at and this.expires_at > now:
        return f"in its turn, {ahead} have waited longer for their age, and at its deadline"
    return f"in its turn: {ahead} have waited longer for their age"


def turns_share(purse: Purse, needed: int) -> int:
    """Calls that this run may spend on addresses that nobody waits for.

    From the hour's budget goes what the urgent of this moment will need, or half of it (at most
    NEWCOMERS) for those who may come, the less the rarer runs are; and a third of what is left,
    for what this estimate does not know. Of the rest, as far as it was not spent in the last hour,
    a run may take an eighth, and the more the longer the last run is ago.
    """
    often = 1 - 1 / _runs_per_hour(purse)
    kept = max(needed, min(purse.per_hour / 2, NEWCOMERS) * often)
    spare = (purse.per_hour - kept) * (1 - often / 3)
    quota = max(spare, purse.per_hour / TRICKLE, OVERHEAD + 2)
    since_s = 3600.0 if purse.since_s is None else purse.since_s
    part = min(1.0, max(LEAST_SHARE, CATCH_UP * since_s / 3600))
    unspent = quota - purse.swept
    return int(max(unspent * part, min(unspent, OVERHEAD + 2)))


def _runs_per_hour(purse: Purse) -> float:
    return max(1.0, 3600 / max(60.0, purse.rhythm_s or 60.0))


def patience(watched: Watched, now: datetime) -> float:
    """How long it has waited for its age; 1 when it was never looked at."""
    age_s = min(now - watched.since, FULL_AGE).total_seconds()
    return _waited_s(watched, now) / max(age_s, 1.0)


def _waited_s(watched: Watched, now: datetime) -> float:
    last = max(filter(None, (watched.checked_at, watched.failed_at)), default=watched.since)
    return (now - last).total_seconds()


def _calls(watched: Watched) -> int:
    """What a look costs while nothing is to be proven: a page without news ends a history."""
    return 1 + watched.has_history


def _affordable(ordered: Sequence[Watched], calls: int) -> list[Watched]:
    """The first of them, as far as so many calls go."""
    taken: list[Watched] = []
    for one in ordered:
        calls -= _calls(one)
        if calls < 0:
            break
        taken.append(one)
    return taken
