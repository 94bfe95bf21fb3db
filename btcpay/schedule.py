"""Which addresses a run looks at: those that somebody waits for, then the others in turn. Pure.

The rules, and what they come to in calls, are in docs/budget.md.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.budget import Purse
from btcpay.urgency import MONEY, PAGE, Tip, Urgency, Watched, is_resting, urgency

FULL_AGE = timedelta(days=1)  # older invoices are all looked at equally often
PROBE_EVERY = timedelta(hours=1)
OVERHEAD = 2  # calls of a run for the tip: its height and its hash
PROOF = 6  # calls for a payment with one confirmation
FOLLOW = 3  # calls for a new tip on top of the last one
BLOCKS_PER_HOUR, MONEY_LOOKS_PER_HOUR = 6, 12
LEAST_SHARE, CATCH_UP = 1 / 8, 4  # of what is left for turns: of a run at least, and an hour's run
NEWCOMERS = 1200  # calls an hour: twenty payers
TRICKLE = 20  # one in so many calls is for turns, however many payers wait


@dataclass(frozen=True)
class Plan:
    """`looks`: ids in order; `unreached`: urgent ones beyond the budget.

    `put_off`: how many others wait for their turn; `swept`: the calls to those that have it.
    """

    looks: list[str]
    unreached: list[str]
    put_off: int
    swept: int


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
