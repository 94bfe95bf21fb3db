"""Whom the mempool is asked for in this run or look, within the hour's calls. Pure."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from btcpay.chain.explorers.quota import Allowance
from btcpay.check.urgency import (
    VIGIL,
    Reason,
    Urgency,
    Watched,
    is_waiting,
    pace_of,
    page_pause,
    urgency,
)

# A payment is shown on its page within this time.
SEEN_WITHIN = timedelta(minutes=5)
MINUTE = timedelta(minutes=1)
# See `shares`.
KEPT_CALLS, KEPT_PART, PAGES_PART = 80, 4, 0.75
SPENT_WITHIN_MIN = 15
LEAST_SAVED, MOST_SAVED = timedelta(seconds=1), timedelta(minutes=5)


class Plan(NamedTuple):
    """`ids`: whom the mempool is asked for, in order; `unreached`: who waits too long for calls.

    Only pages: an end that comes late keeps nobody waiting. `put_off`: how many others wait.
    """

    ids: list[str]
    unreached: list[str]
    put_off: int


def plan(
    watched: Iterable[Watched],
    gone_after: timedelta,
    allowance: Allowance,
    now: datetime,
    ends_before: datetime | None = None,
) -> Plan:
    """Whom is asked for now, within its part of the calls: pages, then money and deadlines.

    Of the pages first those that stayed open, then those that were only opened, and last those
    that have been open for more than an hour. The longest wait first; pages that were opened in
    one minute share a turn, so that hundreds opened at once keep nobody else waiting. No deadline
    later than `ends_before` can be judged yet.
    """
    known = list(watched)
    pace = pace_of(gone_after, allowance.per_hour)
    due = [(one, found) for one in known if (found := urgency(one, pace, now))]
    pages = [pair for pair in due if pair[1].reason is Reason.PAGE]
    crowds = Counter(_opened(one) for one, _ in pages)
    pages.sort(key=lambda pair: _page_order(pair[0], pair[1], crowds[_opened(pair[0])], now))
    others = [pair for pair in due if pair[1].reason is not Reason.PAGE]
    others = [pair for pair in others if _may_be_judged(pair[0], pair[1], ends_before)]
    others.sort(key=lambda pair: (pair[1].reason is Reason.ENDED, pair[0].failures, pair[1].due_at))
    share = shares(allowance, known, now)
    taken = pages[: share.pages]
    taken += others[: min(share.others, share.left - len(taken))]
    late = [
        one.id
        for one, due in pages[share.pages :]
        if is_waiting(one, now) and now - due.due_at > SEEN_WITHIN
    ]
    return Plan([one.id for one, _ in taken], late, len(pages + others) - len(taken) - len(late))


def _may_be_judged(one: Watched, due: Urgency, ends_before: datetime | None) -> bool:
    if due.reason is not Reason.ENDED or one.expires_at is None:
        return True
    return ends_before is not None and one.expires_at <= ends_before


def _page_order(one: Watched, due: Urgency, crowd: int, now: datetime) -> tuple[int, float]:
    since = one.asked_since or one.since
    waited_s = max((now - due.due_at).total_seconds(), 1.0)
    return 2 if now - since > VIGIL else int(one.asked_at == since), -waited_s / crowd


def _opened(one: Watched) -> int:
    """The minute in which its page was opened, since 1970."""
    return int((one.asked_since or one.since).timestamp() // 60)


class Shares(NamedTuple):
    """How many looks may be made now: for pages, for others, and in all."""

    pages: int
    others: int
    left: int


def shares(allowance: Allowance, watched: Iterable[Watched], now: datetime) -> Shares:
    """Looks that may be made now, so that none of the hour's minutes is without.

    Headers and blocks keep what they need for an hour, or a quarter of a small budget. Of what the
    rest makes in a minute pages may have three quarters, since the last look for one, and others
    what pages need not, since the last run. What is left beyond an hour of their own pages may
    spend within a quarter of an hour.
    """
    kept = min(KEPT_CALLS, allowance.per_hour // KEPT_PART)
    left, minutely = max(0, allowance.left - kept), (allowance.per_hour - kept) / 60
    pages = [one for one in watched if one.asked_since]
    looks = [at for one in pages for at in (one.checked_at, one.failed_at) if at]
    saved = min(max(now - max(looks, default=now - MOST_SAVED), LEAST_SAVED), MOST_SAVED)
    more = max(0, left - 60 * PAGES_PART * minutely) / SPENT_WITHIN_MIN
    for_pages = (minutely * PAGES_PART + more) * (saved / MINUTE)
    needed = sum(MINUTE / page_pause(one, now) for one in pages if is_waiting(one, now))
    minutes = 1 if allowance.since_s is None else min(60, max(1, round(allowance.since_s / 60)))
    others = (minutely - min(needed, minutely * PAGES_PART)) * minutes
    return Shares(min(left, max(int(for_pages), saved == MOST_SAVED)), max(1, int(others)), left)
