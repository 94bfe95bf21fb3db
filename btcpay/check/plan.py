"""For whom the mempool is asked in this run or look, and why. Pure.

A block settles what is paid, whether anybody looks or not; the mempool only shows it sooner. So it
is asked for those who wait, as far as the hour's calls go (docs/operators/budget.md):

1. `due` says why an invoice is to be looked for now: an open page, a deadline, money on its way.
2. `shares` says how many looks there may be for pages, and how many for the others.
3. `plan` takes so many of each, the longest wait first.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from btcpay.chain.sources import Allowance

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
ASKED_LATELY = 2 * MINUTE  # an open page says so each minute: a run between two must not miss it
CLOSED_LATELY = 10 * MINUTE  # after a page was closed there is one more look, within this time
BEFORE_DEADLINE = timedelta(seconds=90)  # a run begins each minute, so at least one in this time
AGAIN = timedelta(seconds=10)  # at least, between two looks for one invoice
# Money that waits, and a page that has been open for an hour, may well do so for days: they are
# looked for after an eighth of that time, but not more often than this, and each hour.
AGE_PART, SHORTEST_PAUSE = 8, 10 * MINUTE
PATIENCE = 3  # failures in a row; then an invoice rests for a minute, two, four, up to an hour
OWN_PER_HOUR = 10_000  # an explorer that allows so many calls is one's own: they are not saved
SEEN_WITHIN = 5 * MINUTE  # a payment is shown on its page; calls are saved for as long
FLOOD = 10  # pages opened in a minute; more are taken for one visitor's, and share one turn
# Calls an hour for headers and blocks, or a quarter of a small budget; a sixteenth at any moment.
KEPT_CALLS, KEPT_PART, KEPT_NOW = 80, 4, 16
PAGES_PART = 0.75  # of the other calls, while money or deadlines wait too


@dataclass(frozen=True)
class Watched:
    """An invoice that may be looked for.

    `asked_since` is when somebody opened its page, `asked_at` when it last asked. `came_at`: when
    money that still waits was last seen to come; `is_covered`: it is enough. `vanished_at`: when
    money was last missed that may come again. `failures`: looks in a row that failed.
    """

    id: str
    status: str
    since: datetime
    checked_at: datetime | None = None
    asked_at: datetime | None = None
    asked_since: datetime | None = None
    came_at: datetime | None = None
    is_covered: bool = False
    vanished_at: datetime | None = None
    expires_at: datetime | None = None
    failures: int = 0
    failed_at: datetime | None = None

    @property
    def opened_at(self) -> datetime:
        return self.asked_since or self.since

    @property
    def waits_since(self) -> datetime:
        """When its page was opened, or when it was last looked for since then."""
        return max(self.opened_at, self.checked_at or self.opened_at)

    def was_looked_for(self, since: datetime) -> bool:
        return self.checked_at is not None and self.checked_at >= since


class Reason(StrEnum):
    ENDED = "its deadline has passed"
    ENDING = "its deadline is near"
    MONEY = "money is on its way"
    PAGE = "somebody is looking at its page"


OF_PAGES = {Reason.PAGE, Reason.ENDING}


class Due(NamedTuple):
    reason: Reason
    at: datetime


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
    """Pages first, then money and deadlines, each within its part of the calls.

    No deadline later than `ends_before` can be judged yet. `others_wait`: None in a run; in a look
    after it, which is for pages alone, whether money or deadlines were put off.
    """
    known = list(watched)
    found = [(one, why) for one in known if (why := due(one, gone_after, allowance.per_hour, now))]
    pages = _in_turn([pair for pair in found if pair[1].reason in OF_PAGES], now)
    others = [pair for pair in found if others_wait is None and _is_for_others(*pair, ends_before)]
    others.sort(key=lambda pair: (pair[0].failures, pair[1].at))
    for_pages, for_others = shares(allowance, known, bool(others_wait or others), now)
    left = [pair for pair in pages[for_pages:] if is_waiting(pair[0], now)]
    late = [one.id for one, why in left if now - why.at > SEEN_WITHIN]
    ids = [one.id for one, _ in pages[:for_pages] + others[:for_others]]
    return Plan(ids, late, len(others[for_others:]))


def _is_for_others(one: Watched, why: Due, ends_before: datetime | None) -> bool:
    is_past = ends_before and one.expires_at and one.expires_at <= ends_before
    return why.reason is Reason.MONEY or bool(why.reason is Reason.ENDED and is_past)


def _in_turn(pages: list[tuple[Watched, Due]], now: datetime) -> list[tuple[Watched, Due]]:
    """Those whose time to pay ends come first, then the longest wait.

    After them come pages that were opened and have not asked again, and last those that have been
    open for more than an hour. Pages of a flood divide their wait among them.
    """
    opened = Counter(one.opened_at.timestamp() // 60 for one, _ in pages)

    def turn(pair: tuple[Watched, Due]) -> tuple[bool, bool, bool, timedelta]:
        one, why = pair
        crowd = opened[one.opened_at.timestamp() // 60]
        wait = (now - one.waits_since) / (crowd if crowd > FLOOD else 1)
        is_once, is_old = one.asked_at == one.opened_at, now - one.opened_at > HOUR
        return is_old, is_once, why.reason is not Reason.ENDING, -wait

    return sorted(pages, key=turn)


def shares(
    allowance: Allowance, watched: Iterable[Watched], others_wait: bool, now: datetime
) -> tuple[int, int]:
    """Looks that may be made now, for pages and for others.

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
    saved = _calls_between(max([*looks, now - SEEN_WITHIN]), now, for_pages)
    return min(left, saved), min(left, _calls_between(now - MINUTE, now, for_others))


def _calls_between(since: datetime, now: datetime, minutely: float) -> int:
    """By the minutes of the clock, so that no part of a call is lost from look to look."""
    before, after = (int(at.timestamp() / 60 * minutely) for at in (since, now))
    return max(0, after - before)


def is_waiting(one: Watched, now: datetime) -> bool:
    """Whether somebody looks at its page, and waits for money to be seen."""
    is_open = one.asked_at is not None and now - one.asked_at <= ASKED_LATELY
    return one.status == "open" and is_open and not one.is_covered


def due(one: Watched, gone_after: timedelta, per_hour: int, now: datetime) -> Due | None:
    """Why the mempool is to be asked for this invoice, and since when; None when it need not.

    `gone_after` as the network has it; the explorer allows `per_hour` calls.
    """
    if one.failed_at and one.failures >= PATIENCE:
        rest = MINUTE * 2 ** min(one.failures - PATIENCE, 6)
        if now - one.failed_at < min(rest, HOUR):
            return None
    is_own = per_hour >= OWN_PER_HOUR
    found = [_of_deadline(one, gone_after, now)]
    if is_own or one.checked_at is None or now - one.checked_at >= AGAIN:
        found += [_of_page(one, is_own, now), _of_money(one, is_own, now)]
    return next((each for each in found if each and each.at <= now), None)


def _of_deadline(one: Watched, gone_after: timedelta, now: datetime) -> Due | None:
    """Once after it, or when what vanished is gone; once before it, if a page was ever opened."""
    if one.status != "open" or one.expires_at is None:
        return None
    near_at = one.expires_at - BEFORE_DEADLINE
    if now < one.expires_at:
        is_new = one.asked_since and not one.was_looked_for(near_at)
        return Due(Reason.ENDING, near_at) if is_new else None
    if not one.was_looked_for(one.expires_at):
        return Due(Reason.ENDED, one.expires_at)
    gone_at = one.vanished_at + gone_after if one.vanished_at else one.expires_at
    return None if one.came_at else Due(Reason.ENDED, gone_at)


def _of_page(one: Watched, is_own: bool, now: datetime) -> Due | None:
    """While it is open, and once more when it was closed."""
    if one.status != "open" or one.is_covered or not one.asked_since:
        return None
    open_for, asked_at = one.waits_since - one.opened_at, one.asked_at or now
    if is_waiting(one, now):
        is_slow = open_for > HOUR and not is_own
        return Due(Reason.PAGE, one.waits_since + (_pause(open_for) if is_slow else timedelta()))
    is_new = now - asked_at <= CLOSED_LATELY and one.waits_since <= asked_at + MINUTE
    return Due(Reason.PAGE, one.waits_since) if is_new else None


def _of_money(one: Watched, is_own: bool, now: datetime) -> Due | None:
    """It may be replaced, joined or dropped."""
    if one.came_at is None:
        return None
    if is_own or one.checked_at is None or one.checked_at < one.came_at:
        return Due(Reason.MONEY, one.came_at)
    return Due(Reason.MONEY, one.checked_at + _pause(now - one.came_at))


def _pause(age: timedelta) -> timedelta:
    return min(max(age / AGE_PART, SHORTEST_PAUSE), HOUR)
