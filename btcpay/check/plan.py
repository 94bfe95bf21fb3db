"""Which addresses a run scans: those that somebody waits for, then the others in turn. Pure.

The rules, and what they come to in calls, are in docs/budget.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.check.shares import (
    above_kept,
    at_once_share,
    background_share,
    calls_of,
    cost,
    needed_calls,
    opened_share,
    paced_share,
)
from btcpay.check.urgency import (
    LONGEST_PAUSE,
    NEAR,
    OPENED,
    PAGE,
    PART,
    PASSED,
    Tip,
    Urgency,
    Watched,
    began,
    is_asked,
    is_resting,
    is_vigil,
    urgency,
)
from btcpay.explorers.allowance import Allowance
from btcpay.explorers.calls import OVERHEAD

FULL_AGE = timedelta(days=1)  # older invoices are all scanned equally often
PROBE_EVERY = timedelta(hours=1)
# A payment is seen within this time; otherwise the run reports that its calls did not suffice.
SEEN_WITHIN = timedelta(minutes=5)
PAUSE_S = LONGEST_PAUSE.total_seconds()
AWAITED = (OPENED, PAGE, PART)


@dataclass(frozen=True)
class Plan:
    """`ids`: what the run scans, in order; `unreached`: the urgent that wait too long for calls.

    `put_off`: how many others wait for their turn; `background_calls`: those spent on turns.
    """

    ids: list[str]
    unreached: list[str]
    put_off: int
    background_calls: int


@dataclass(frozen=True)
class Queues:
    """Who waits, each in the order of serving; `reasons` of the urgent, by id.

    `background`: nobody waits for them. `for_long`, whose pages have been open for more than an
    hour, are among them too.
    """

    reasons: dict[str, Urgency]
    at_once: list[Watched]
    opened: list[Watched]
    lately: list[Watched]
    for_long: list[Watched]
    background: list[Watched]


def plan(watched: Iterable[Watched], tip: Tip, allowance: Allowance, now: datetime) -> Plan:
    """Spends this run's share of the budget.

    1. Deadlines, and money that is enough.
    2. Pages that were just opened.
    3. Pages opened lately, the newest most often: so many in each minute of the hour.
    4. As many of the rest as their share allows, first those that have waited longest for their
       age. What payers may need in the rest of the hour is kept back.
    5. Pages that have been open for long, with half of what the others leave.
    """
    known = list(watched)
    queues = _queues(known, tip, now)
    reached = _affordable(queues.at_once, at_once_share(allowance))
    left = allowance.left - OVERHEAD - cost(reached)
    opened = _affordable(queues.opened, opened_share(allowance, left))
    left, paced = left - cost(opened), paced_share(allowance)
    lately = _affordable(queues.lately, min(paced, left))
    reached += opened + lately
    left, idle = left - cost(lately), (paced - cost(lately)) // 2
    share = background_share(allowance, needed_calls(known, tip, allowance, now), left)
    served = _affordable(queues.background, share - (0 if reached else OVERHEAD))
    left -= cost(served)
    taken = {one.id for one in [*reached, *served]}
    for_long = [one for one in queues.for_long if one.id not in taken]
    for_long = _affordable(for_long, min(idle, above_kept(allowance, left)))
    ids = [one.id for one in [*reached, *for_long, *served]]
    urgent = [*queues.at_once, *queues.opened, *queues.lately]
    missed = [one for one in urgent if one.id not in taken]
    unreached = [one.id for one in missed if _is_late(queues.reasons[one.id], one, now)]
    return Plan(
        ids=ids,
        unreached=unreached,
        put_off=len(urgent) + len(queues.background) - len(ids) - len(unreached),
        background_calls=cost(served) + (OVERHEAD if served and not reached else 0),
    )


def _queues(watched: Iterable[Watched], tip: Tip, now: datetime) -> Queues:
    queues = Queues({}, [], [], [], [], [])
    for one in watched:
        if reason := urgency(one, tip, now):
            queues.reasons[one.id] = reason
            awaited = queues.opened if reason is OPENED else queues.lately
            (awaited if reason in AWAITED else queues.at_once).append(one)
        elif not is_resting(one, now):
            queues.background.append(one)
            if is_asked(one, now) and not is_vigil(one, now) and _waited_s(one, now) > PAUSE_S:
                queues.for_long.append(one)
    for urgent in (queues.at_once, queues.opened, queues.lately):
        urgent.sort(key=lambda one: _place(queues.reasons[one.id], one, now))
    queues.for_long.sort(key=lambda one: -_waited_s(one, now))
    queues.background.sort(key=lambda one: -patience(one, now))
    return queues


def _place(reason: Urgency, watched: Watched, now: datetime) -> tuple[int, float]:
    """The order of the urgent: within one place, the longest wait comes first.

    Among open pages one that has been open for twice as long counts four times less: a page that
    was opened after hundreds of others, which are held open, is scanned before them.
    """
    if reason not in AWAITED:
        return reason.place, -_waited_s(watched, now)
    age_s = max((now - began(watched)).total_seconds(), 60.0)
    return reason.place, -_waited_s(watched, now, began(watched)) / age_s**2


def _is_late(reason: Urgency, watched: Watched, now: datetime) -> bool:
    """Whether it has waited for longer than payers are told; before a deadline any wait is late."""
    since = watched.expires_at if reason is PASSED else None
    if reason in AWAITED:
        since = began(watched)
    return reason is NEAR or _waited_s(watched, now, since) > SEEN_WITHIN.total_seconds()


def next_scan(id: str, watched: Sequence[Watched], tip: Tip, now: datetime) -> str:
    """When this address is scanned next, and why then, as a sentence."""
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
    before = f"{ahead} others are before it" if ahead > 1 else f"{ahead or 'no'} other is before it"
    if heights:
        return f"when block {min(heights)} is there, or in its turn; {before}"
    if this.waiting:
        return f"with the next block, or in its turn; {before}"
    if this.status == "open" and this.expires_at and this.expires_at > now:
        return f"in its turn, and at its deadline; {before}"
    return f"in its turn; {before}"


def patience(watched: Watched, now: datetime) -> float:
    """How long it has waited, measured by its age; 1 when it was never scanned."""
    age_s = min(now - watched.since, FULL_AGE).total_seconds()
    return _waited_s(watched, now) / max(age_s, 1.0)


def _waited_s(watched: Watched, now: datetime, since: datetime | None = None) -> float:
    """Seconds since the last scan, or since a given moment if that is later."""
    known = filter(None, (watched.checked_at, watched.failed_at, since))
    return (now - max(known, default=watched.since)).total_seconds()


def _affordable(ordered: Sequence[Watched], calls: int) -> list[Watched]:
    """As many of them, from the first on, as this number of calls allows."""
    taken: list[Watched] = []
    for one in ordered:
        calls -= calls_of(one)
        if calls < 0:
            break
        taken.append(one)
    return taken
