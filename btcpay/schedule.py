"""Which addresses a run looks at: those that somebody waits for, then the others in turn. Pure.

The rules, and what they come to in calls, are in docs/budget.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

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
LEAST_SHARE, CATCH_UP = 1 / 8, 4  # of what is left for turns: of a run at least, and an hour's run
TRICKLE = 20  # one in so many calls is for turns, however many payers wait


@dataclass(frozen=True)
class Waiting:
    """An output that is no payment yet; `ready_height`: the tip at which it may become one.

    None while it is in no proven block.
    """

    ready_height: int | None


@dataclass(frozen=True)
class Watched:
    """What the schedule knows of an address.

    `since` is when its age began; `looks` counts the looks so far.
    """

    id: str
    status: str
    since: datetime
    checked_at: datetime | None = None
    asked_at: datetime | None = None
    expires_at: datetime | None = None
    doubted: bool = False
    has_history: bool = False
    waiting: Sequence[Waiting] = ()
    looks: int = 0


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


def urgency(watched: Watched, tip: Tip, now: datetime) -> str | None:
    """Why this address must be looked at now, as a sentence's end; None when it has its turn."""
    if reason := _deadline(watched, now):
        return reason
    if watched.checked_at and now - watched.checked_at < LOOK_AGAIN:
        return None
    if watched.asked_at and watched.status != "paid" and now - watched.asked_at <= ASKED_LATELY:
        return "somebody is looking at its page"
    if (watched.waiting or watched.doubted) and _has_news(watched, tip, now):
        return "money is on its way"
    return None


def _deadline(watched: Watched, now: datetime) -> str | None:
    if watched.status != "open" or watched.expires_at is None:
        return None
    checked_at = watched.checked_at or watched.since
    if now >= watched.expires_at:
        # Afterwards it is only open because money waits, or because a look missed some.
        is_due = checked_at < watched.expires_at or not watched.waiting
        return "its deadline has passed" if is_due else None
    last_minute = watched.expires_at - BEFORE_DEADLINE
    return "its deadline is near" if checked_at < last_minute <= now else None


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
    urgent: list[Watched] = []
    turns: list[Watched] = []
    for one in watched:
        (urgent if urgency(one, tip, now) else turns).append(one)
    payers = sum(one.asked_at is not None for one in urgent)
    left = purse.left - OVERHEAD
    reached = _affordable(sorted(urgent, key=lambda one: -_waited_s(one, now)), left)
    spent = sum(_calls(one) for one in reached)
    share = min(left - spent, turns_share(purse, payers) - (0 if reached else OVERHEAD))
    served = _affordable(sorted(turns, key=lambda one: -patience(one, now)), share)
    swept = sum(_calls(one) for one in served) + (OVERHEAD if served and not reached else 0)
    ids = {one.id for one in reached}
    return Plan(
        looks=[one.id for one in [*reached, *served]],
        unreached=[one.id for one in urgent if one.id not in ids],
        put_off=len(turns) - len(served),
        swept=swept,
    )


def next_look(id: str, watched: Sequence[Watched], tip: Tip, now: datetime) -> str:
    """When this address is looked at next, and why then, as a sentence."""
    found = [one for one in watched if one.id == id]
    if not found:
        return "none: its watch has ended; `btcpay check --invoice` looks all the same"
    (this,) = found
    if reason := urgency(this, tip, now):
        return f"the next check: {reason}"
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


def turns_share(purse: Purse, payers: int) -> int:
    """Calls that this run may spend on addresses that nobody waits for.

    From the hour's budget goes what the payers of this moment will need, or half of it for those
    who may come, less the rarer the runs. Of what is left, and was not spent in the last hour, a
    run may take an eighth, and the more the longer the last run is ago.
    """
    rhythm_s = max(60.0, purse.rhythm_s or 60.0)
    runs_per_hour = max(1.0, 3600 / rhythm_s)
    needed = (payers + OVERHEAD) * runs_per_hour
    kept = max(needed, purse.per_hour / 2 * (1 - 1 / runs_per_hour))
    quota = max(purse.per_hour - kept, purse.per_hour / TRICKLE)
    since_s = 3600.0 if purse.since_s is None else purse.since_s
    return int((quota - purse.swept) * min(1.0, max(LEAST_SHARE, CATCH_UP * since_s / 3600)))


def patience(watched: Watched, now: datetime) -> float:
    """How long it has waited for its age; 1 when it was never looked at."""
    age_s = min(now - watched.since, FULL_AGE).total_seconds()
    return _waited_s(watched, now) / max(age_s, 1.0)


def _waited_s(watched: Watched, now: datetime) -> float:
    return (now - (watched.checked_at or watched.since)).total_seconds()


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
