"""How many calls a run may spend on whom, so that the hour's budget lasts. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from btcpay.check.urgency import MONEY, Tip, Watched, is_asked, is_vigil, urgency
from btcpay.explorers.allowance import Allowance
from btcpay.explorers.calls import FOLLOW, OVERHEAD, history_calls, proof_calls

BLOCKS_PER_HOUR, MONEY_LOOKS_PER_HOUR, PAGE_LOOKS_PER_HOUR = 6, 12, 16
LEAST_SHARE, CATCH_UP = 1 / 8, 4  # of what is left for turns: of a run at least, and an hour's run
NEWCOMERS = 1200  # calls an hour: those who may come, however large the budget
TRICKLE = 20  # one in so many calls is for turns, however many payers wait
PACED = 2 / 5  # of all calls are for pages that are open, as many in each minute
# Hundreds of first looks at once must leave what the pages and the tip need for an hour; turns, and
# pages that have been open for long, what deadlines and proofs need.
KEPT_FROM_FIRST_LOOKS, KEPT = 1 / 2, 1 / 4


def at_once_share(allowance: Allowance) -> int:
    """Calls for deadlines and money that is enough: half of what is left, all after a pause."""
    left = allowance.left - OVERHEAD
    return max(left if _minutes(allowance) > 1 else left // 2, min(left, 2))


def opened_share(allowance: Allowance, left: int) -> int:
    """Calls for pages that were just opened, of so many that are left: half of what is not kept."""
    above = above_kept(allowance, left, KEPT_FROM_FIRST_LOOKS)
    least = min(left, max(paced_share(allowance) // 2, 2))
    return max(above if _minutes(allowance) > 1 else above // 2, least)


def above_kept(allowance: Allowance, left: int, kept: float = KEPT) -> int:
    """What may be spent on those who are not awaited now; hourly runs need not keep much."""
    return max(0, left - int(allowance.per_hour * kept * _runs(allowance) / 60))


def paced_share(allowance: Allowance) -> int:
    """Calls for pages that are open: as many in each minute of the hour.

    None in a second run of the same minute, as of another machine.
    """
    return int(allowance.per_hour * PACED * _minutes(allowance) / 60)


def turns_share(allowance: Allowance, needed: int, left: int) -> int:
    """Calls that this run may spend on addresses that nobody waits for, of so many that are left.

    From the hour's budget goes what the urgent of this moment will need, or half of it (at most
    NEWCOMERS) for those who may come, the less the rarer runs are; and a third of what is left,
    for what this estimate does not know. Of the rest, as far as it was not spent in the last hour,
    a run may take an eighth, and the more the longer the last run is ago. Beside bots that take all
    but what is kept, there is a trickle of what is kept.
    """
    often = 1 - 1 / _runs(allowance)
    kept = max(needed, min(allowance.per_hour / 2, NEWCOMERS) * often)
    spare = (allowance.per_hour - kept) * (1 - often / 3)
    trickle = max(allowance.per_hour / TRICKLE, OVERHEAD + 2)
    share = max(spare, trickle)
    since_s = 3600.0 if allowance.since_s is None else allowance.since_s
    part = min(1.0, max(LEAST_SHARE, CATCH_UP * since_s / 3600))
    unspent = share - allowance.background
    least = OVERHEAD + 2 if allowance.background < trickle else 0
    return int(
        min(
            max(unspent * part, min(unspent, OVERHEAD + 2)),
            max(above_kept(allowance, left), least),
            left,
        )
    )


def needed_calls(watched: Sequence[Watched], tip: Tip, allowance: Allowance, now: datetime) -> int:
    """Calls that those who are awaited will need in an hour, the run's own included.

    Pages as they are looked at; waiting money at every block and every ten minutes, and then its
    proof. A tenth of the budget is kept for proofs of what was not seen waiting. Pages and money
    get no more than half of the budget, however many they are.
    """
    pages = [one for one in watched if is_vigil(one, now) or is_asked(one, now)]
    money = [one for one in watched if urgency(one, tip, now) is MONEY]
    runs = _runs(allowance)
    proofs = sum(proof_calls(one.confirmations) for one in money)
    looks = cost(pages) * min(runs, PAGE_LOOKS_PER_HOUR) + cost(money) * MONEY_LOOKS_PER_HOUR
    awaited = min(looks + proofs, allowance.per_hour / 2)
    return int(runs + BLOCKS_PER_HOUR * FOLLOW + allowance.per_hour / 10 + awaited)


def calls_of(watched: Watched) -> int:
    """What a look costs while nothing is to be proven."""
    return history_calls(watched.has_history)


def cost(watched: Iterable[Watched]) -> int:
    """What looks at all of them cost."""
    return sum(map(calls_of, watched))


def _runs(allowance: Allowance) -> float:
    """In an hour."""
    return max(1.0, 3600 / max(60.0, allowance.rhythm_s or 60.0))


def _minutes(allowance: Allowance) -> int:
    """Whole minutes since the run before, up to an hour; an hour when there was none."""
    return 60 if allowance.since_s is None else min(60, int(allowance.since_s) // 60)
