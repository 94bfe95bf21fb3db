"""Whom the mempool is asked for in this run or look, within the hour's calls. Pure."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from btcpay.chain.sources import Allowance
from btcpay.check.urgency import (
    VIGIL,
    Reason,
    Urgency,
    Watched,
    is_waiting,
    pace_of,
    urgency,
    waits_since,
)

# A payment is shown on its page within this time.
SEEN_WITHIN = timedelta(minutes=5)
SOON = SEEN_WITHIN / 2  # a wait that comes before all shorter ones
MINUTE = timedelta(minutes=1)
# Of the hour's calls headers and blocks have so many, or a quarter of a small budget, and a
# sixteenth of these at any moment.
KEPT_CALLS, KEPT_PART, KEPT_NOW = 80, 4, 16
PAGES_PART = 0.75  # of the rest, while others wait
MOST_SAVED = timedelta(minutes=5)
END_WAITS = timedelta(minutes=30)  # so much later an end has its turn than money, or a look before


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
    others_wait: bool | None = None,
) -> Plan:
    """Whom is asked for now, within its part of the calls: pages, then money and deadlines.

    No deadline later than `ends_before` can be judged yet. `others_wait`: None in a run; in a look
    after it, which is for pages alone, whether money or deadlines were put off.
    """
    known = list(watched)
    pace = pace_of(gone_after, allowance.per_hour)
    due = [(one, found) for one in known if (found := urgency(one, pace, now))]
    pages = [pair for pair in due if _is_for_page(*pair, now)]
    others = [
        (one, found)
        for one, found in due
        if others_wait is None
        and not _is_for_page(one, found, now)
        and (found.reason is not Reason.ENDED or _may_end(one, ends_before))
    ]
    for_pages, for_others, minutely = shares(allowance, known, bool(others_wait or others), now)
    crowds = Counter(_opened(one) for one, _ in pages)
    pages.sort(key=lambda pair: _turn(pair, crowds[_opened(pair[0])], minutely, now))
    others.sort(key=lambda pair: (pair[0].failures, pair[1].due_at + _slack(pair[1])))
    late = [
        one.id
        for one, found in pages[for_pages:]
        if is_waiting(one, now) and now - found.due_at > SEEN_WITHIN
    ]
    taken = pages[:for_pages] + others[:for_others]
    return Plan([one.id for one, _ in taken], late, len(others[for_others:]))


def _slack(due: Urgency) -> timedelta:
    return END_WAITS if due.reason is Reason.ENDED else timedelta()


def _is_for_page(one: Watched, due: Urgency, now: datetime) -> bool:
    return due.reason is Reason.PAGE or (due.reason is Reason.ENDING and is_waiting(one, now))


def _may_end(one: Watched, ends_before: datetime | None) -> bool:
    return bool(ends_before and one.expires_at and one.expires_at <= ends_before)


def _opened(one: Watched) -> int:
    """The minute in which its page was opened, since 1970."""
    return int((one.asked_since or one.since).timestamp() // 60)


def _turn(
    pair: tuple[Watched, Urgency], crowd: int, minutely: float, now: datetime
) -> tuple[int, timedelta]:
    """The order of pages: first those that stayed open and wait for long, or end.

    Then comes who waits for less, or only opened it, and last what has been open for more than an
    hour. The longest wait first; a `crowd` of pages that were opened in one minute shares a turn,
    so that hundreds opened at once keep nobody else waiting. For who waits for long it counts as
    one what a minute can pay for.
    """
    one, due = pair
    since, waited = one.asked_since or one.since, now - waits_since(one)
    turns = max(1.0, crowd / max(minutely, 1))
    if now - since > VIGIL:
        return 2, -waited / crowd
    if one.asked_at != since and (waited >= SOON * turns or due.reason is Reason.ENDING):
        return 0, -waited / turns
    return 1, -waited / crowd


def shares(
    allowance: Allowance, watched: Iterable[Watched], others_wait: bool, now: datetime
) -> tuple[int, int, float]:
    """Looks that may be made now, for pages and for others; how many a minute has for both.

    Of what lasts headers and blocks keep their part. Pages have three quarters of the rest, since
    the last look for one, and others a minute's quarter; or all, when nobody else waits.
    """
    kept = min(KEPT_CALLS, allowance.per_hour // KEPT_PART)
    left = max(0, allowance.left - kept // KEPT_NOW)
    minutely = max(0.0, min(allowance.minutely, allowance.per_hour / 60) - kept / 60)
    pages = [one for one in watched if one.asked_since]
    looks = [at for one in pages for at in (one.checked_at, one.failed_at) if at]
    is_open = any(is_waiting(one, now) for one in pages)
    for_pages = minutely * (PAGES_PART if others_wait else 1)
    for_others = minutely * (1 - PAGES_PART if is_open else 1)
    return (
        min(left, _due_calls(for_pages, max([*looks, now - MOST_SAVED]), now)),
        min(left, _due_calls(for_others, now - MINUTE, now)),
        minutely,
    )


def _due_calls(minutely: float, since: datetime, now: datetime) -> int:
    """By the minutes of the clock, so that no part of a call is lost from look to look."""
    before, after = (int(at.timestamp() / 60 * minutely) for at in (since, now))
    return max(0, after - before)
