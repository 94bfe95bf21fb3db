"""How many calls a run may spend on which addresses, so that the hour's budget lasts. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from btcpay.check.urgency import MONEY, Tip, Watched, is_asked, is_vigil, urgency
from btcpay.explorers.allowance import Allowance
from btcpay.explorers.calls import FOLLOW, OVERHEAD, history_calls, proof_calls

BLOCKS_PER_HOUR, MONEY_SCANS_PER_HOUR, PAGE_SCANS_PER_HOUR = 6, 12, 16
# Of what the background may spend in an hour: at least in one run, and in an hourly run.
LEAST_SHARE, CATCH_UP = 1 / 8, 4
NEWCOMERS = 1200  # calls an hour kept for payers who may still come, however large the budget
TRICKLE = 20  # one call in twenty goes to the background, however many payers wait
PACED = 2 / 5  # of all calls are for open pages, the same number in each minute
# Hundreds of first scans at once must leave what the pages and the tip need for an hour. The
# background, and pages that have been open for long, must leave what deadlines and proofs need.
KEPT_FROM_FIRST_SCANS, KEPT = 1 / 2, 1 / 4


def at_once_share(allowance: Allowance) -> int:
    """Calls for deadlines and sufficient money: half of what is left; all of it after a pause."""
    left = allowance.left - OVERHEAD
    return max(left if _minutes(allowance) > 1 else left // 2, min(left, 2))


def opened_share(allowance: Allowance, left: int) -> int:
    """Calls for pages that were just opened: half of what is `left` and not kept for others."""
    above = above_kept(allowance, left, KEPT_FROM_FIRST_SCANS)
    least = min(left, max(paced_share(allowance) // 2, 2))
    return max(above if _minutes(allowance) > 1 else above // 2, least)


def above_kept(allowance: Allowance, left: int, kept: float = KEPT) -> int:
    """What may be spent on what nobody awaits now; hourly runs need not keep much."""
    return max(0, left - int(allowance.per_hour * kept * _runs(allowance) / 60))


def paced_share(allowance: Allowance) -> int:
    """Calls for open pages: the same number in each minute of the hour.

    A second run in the same minute, on another machine perhaps, has none.
    """
    return int(allowance.per_hour * PACED * _minutes(allowance) / 60)


def background_share(allowance: Allowance, needed: int, left: int) -> int:
    """Calls that this run may spend on addresses that nobody waits for.

    1. What the urgent of this moment will need in the hour is kept for them; for payers who may
       still come at least half of the budget (at most NEWCOMERS), or less when runs are rare.
    2. A third of the remainder is kept for what this estimate does not know.
    3. The rest, minus what was spent in the last hour, is the background's. One run may take an
       eighth of that, and more when the last run was long ago.
    4. When bots use up everything else, the background still gets a trickle of what is kept.
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
    """Calls that the awaited will need in an hour, the runs' own calls included.

    Open pages are scanned at their pace; waiting money at every block and every ten minutes, and
    then proven. A tenth of the budget is kept for proofs of what was not seen waiting. Pages and
    money together get at most half of the budget, however many they are.
    """
    pages = [one for one in watched if is_vigil(one, now) or is_asked(one, now)]
    money = [one for one in watched if urgency(one, tip, now) is MONEY]
    runs = _runs(allowance)
    proofs = sum(proof_calls(one.confirmations) for one in money)
    scans = cost(pages) * min(runs, PAGE_SCANS_PER_HOUR) + cost(money) * MONEY_SCANS_PER_HOUR
    awaited = min(scans + proofs, allowance.per_hour / 2)
    return int(runs + BLOCKS_PER_HOUR * FOLLOW + allowance.per_hour / 10 + awaited)


def calls_of(watched: Watched) -> int:
    """The price of a scan that proves nothing."""
    return history_calls(watched.has_history)


def cost(watched: Iterable[Watched]) -> int:
    """The price of scanning all of them."""
    return sum(map(calls_of, watched))


def _runs(allowance: Allowance) -> float:
    """Runs in an hour."""
    return max(1.0, 3600 / max(60.0, allowance.rhythm_s or 60.0))


def _minutes(allowance: Allowance) -> int:
    """Whole minutes since the run before, up to an hour; an hour when there was none."""
    return 60 if allowance.since_s is None else min(60, int(allowance.since_s) // 60)
