"""Plans for which invoices a run, or a look after it, asks the mempool. Pure.

A block settles every payment, whether anybody looks or not; the mempool only shows it sooner. So it
is asked for those who wait, as far as the hour's calls go (docs/operators/budget.md):

1. `due` says why an invoice is to be looked for now: an open page, a deadline, money on its way.
2. `shares` says how many looks there may be for pages, and how many for the others.
3. `plan` takes as many of each, the longest wait first.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from btcpay.chain.sources import Allowance
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import from_ms

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
ASKED_LATELY = (
    2 * MINUTE
)  # an open page reports each minute; a run in between must not miss it
CLOSED_LATELY = (
    10 * MINUTE
)  # after a page was closed, there is one more look within this time
BEFORE_DEADLINE = timedelta(
    seconds=90
)  # a run begins each minute, so at least one in this time
AGAIN = timedelta(seconds=10)  # at least, between two looks for one invoice
# Money that waits, and a page that has been open for an hour, may well do so for days: they are
# looked for after an eighth of that time, but not more often than this, and each hour.
AGE_PART = 8
SHORTEST_PAUSE = 10 * MINUTE
PATIENCE = 3  # failures in a row; then it rests for a minute, two, four, up to an hour
OWN_PER_HOUR = 10_000  # an explorer that allows so many calls is one's own, and calls are not saved
SEEN_WITHIN = 5 * MINUTE  # a payment is shown on its page; calls are saved for as long
FLOOD = (
    10  # pages opened in a minute; more are taken for one visitor's, and share one turn
)
# Calls an hour for headers and blocks, or a quarter of a small budget; a sixteenth at any moment.
KEPT_CALLS = 80
KEPT_PART = 4
KEPT_NOW = 16
PAGES_PART = 0.75  # of the other calls, while money or deadlines wait too
NEVER = from_ms(0)


@dataclass(frozen=True)
class WatchedInvoice:
    """An invoice that may be looked for, with the time when each thing last happened.

    `opened_at`: somebody opened its page; `asked_at`: the page asked. `came_at`: money came that
    still waits; `is_covered`: it is enough. `vanished_at`: money that may come again was missing.
    """

    id: str
    status: InvoiceStatus
    checked_at: datetime = NEVER
    opened_at: datetime = NEVER
    asked_at: datetime = NEVER
    came_at: datetime | None = None
    is_covered: bool = False
    vanished_at: datetime = NEVER
    expires_at: datetime | None = None
    failures: int = 0  # in a row
    failed_at: datetime = NEVER

    @property
    def waits_since(self) -> datetime:
        """The time when its page was opened, or of the last look since then."""
        return max(self.opened_at, self.checked_at)


class Reason(StrEnum):
    ENDED = "its deadline has passed"
    ENDING = "its deadline is near"
    MONEY = "money is on its way"
    PAGE = "somebody is looking at its page"


class Due(NamedTuple):
    """An invoice to be looked for, and since when."""

    one: WatchedInvoice
    reason: Reason
    at: datetime


class Plan(NamedTuple):
    """`ids`: the invoices to look for, in order; `put_off`: how many others are left for later.

    `unreached`: those with a payer who waits too long for a call, as nobody waits for an end.
    """

    ids: list[str]
    unreached: list[str]
    put_off: int


def plan(
    watched: Iterable[WatchedInvoice],
    gone_after: timedelta,
    allowance: Allowance,
    now: datetime,
    ends_before: datetime = NEVER,
    others_wait: bool | None = None,
) -> Plan:
    """Pages first, then money and deadlines, each within its part of the calls.

    No deadline later than `ends_before` can be judged yet. `others_wait`: None in a run; in a look
    after it, which is for pages alone, True if money or deadlines were put off.
    """
    known = list(watched)
    found = [
        each for one in known if (each := due(one, gone_after, allowance.per_hour, now))
    ]
    pages = _in_turn(
        [each for each in found if each.reason in (Reason.PAGE, Reason.ENDING)], now
    )
    judged = [
        each for each in found if each.reason is Reason.ENDED and each.at <= ends_before
    ]
    money = [
        each for each in found if each.reason is Reason.MONEY and others_wait is None
    ]
    others = sorted(judged + money, key=lambda each: (each.one.failures, each.at))
    for_pages, for_others = shares(allowance, known, bool(others_wait or others), now)
    left = [each for each in pages[for_pages:] if is_waiting(each.one, now)]
    late = [each.one.id for each in left if now - each.at > SEEN_WITHIN]
    ids = [each.one.id for each in pages[:for_pages] + others[:for_others]]
    return Plan(ids, late, len(others[for_others:]))


def _in_turn(pages: list[Due], now: datetime) -> list[Due]:
    """Invoices whose time to pay is ending come first, then those that have waited longest.

    After them come pages that were opened and have not asked again, and last those that have been
    open for more than an hour. Pages of a flood divide their wait among them.
    """
    opened = Counter(each.one.opened_at.timestamp() // 60 for each in pages)

    def turn(each: Due) -> tuple[bool, bool, bool, timedelta]:
        one = each.one
        crowd = opened[one.opened_at.timestamp() // 60]
        wait = (now - one.waits_since) / (crowd if crowd > FLOOD else 1)
        is_once = one.asked_at == one.opened_at
        is_old = now - one.opened_at > HOUR
        return is_old, is_once, each.reason is not Reason.ENDING, -wait

    return sorted(pages, key=turn)


def shares(
    allowance: Allowance,
    watched: Iterable[WatchedInvoice],
    others_wait: bool,
    now: datetime,
) -> tuple[int, int]:
    """Looks that may be made now, for pages and for others.

    Headers and blocks keep their part of what lasts. Of the rest pages have three quarters of all
    that came since the last look for one, and the others a quarter of what a minute brings; each
    has all of it when the other waits for nothing.
    """
    kept = min(KEPT_CALLS, allowance.per_hour // KEPT_PART)
    left = max(0, allowance.left - kept // KEPT_NOW)
    minutely = max(0.0, min(allowance.minutely, allowance.per_hour / 60) - kept / 60)
    pages = [one for one in watched if one.opened_at > NEVER]
    looked_at = [at for one in pages for at in (one.checked_at, one.failed_at)]
    for_pages = minutely * (PAGES_PART if others_wait else 1)
    for_others = minutely * (
        1 - PAGES_PART if any(is_waiting(one, now) for one in pages) else 1
    )
    saved = _calls_between(max([*looked_at, now - SEEN_WITHIN]), now, for_pages)
    return min(left, saved), min(left, _calls_between(now - MINUTE, now, for_others))


def _calls_between(since: datetime, now: datetime, minutely: float) -> int:
    """Counted by the clock's minutes, so that no fraction of a call is lost from look to look."""
    before, after = (int(at.timestamp() / 60 * minutely) for at in (since, now))
    return max(0, after - before)


def is_waiting(one: WatchedInvoice, now: datetime) -> bool:
    """True while somebody looks at its page, and waits for money to be seen."""
    return (
        one.status == InvoiceStatus.OPEN
        and now - one.asked_at <= ASKED_LATELY
        and not one.is_covered
    )


def due(
    one: WatchedInvoice, gone_after: timedelta, per_hour: int, now: datetime
) -> Due | None:
    """The reason to ask the mempool for this invoice; None when there is none yet.

    `gone_after` as the network has it; the explorer allows `per_hour` calls.
    """
    rest = MINUTE * 2 ** max(0, min(one.failures - PATIENCE, 6))
    if one.failures >= PATIENCE and now - one.failed_at < min(rest, HOUR):
        return None
    is_own = per_hour >= OWN_PER_HOUR
    found = [_of_deadline(one, gone_after, now)]
    if is_own or now - one.checked_at >= AGAIN:
        found += [_of_page(one, is_own, now), _of_money(one, is_own, now)]
    return next((each for each in found if each and each.at <= now), None)


def _of_deadline(
    one: WatchedInvoice, gone_after: timedelta, now: datetime
) -> Due | None:
    """Due once after it, or when vanished money is gone; once before, if a page was ever opened."""
    if one.status != InvoiceStatus.OPEN or one.expires_at is None:
        return None
    near_at = one.expires_at - BEFORE_DEADLINE
    if now < one.expires_at:
        is_new = one.opened_at > NEVER and one.checked_at < near_at
        if is_new:
            return Due(one, Reason.ENDING, near_at)
        return None
    if one.checked_at < one.expires_at:
        return Due(one, Reason.ENDED, one.expires_at)
    gone_at = max(one.expires_at, one.vanished_at + gone_after)
    if one.came_at:
        return None
    return Due(one, Reason.ENDED, gone_at)


def _of_page(one: WatchedInvoice, is_own: bool, now: datetime) -> Due | None:
    """Due while it is open, and once more after it was closed."""
    if one.status != InvoiceStatus.OPEN or one.is_covered or one.opened_at == NEVER:
        return None
    open_for = one.waits_since - one.opened_at
    at = one.waits_since
    if is_waiting(one, now):
        pause = _pause(open_for) if open_for > HOUR and not is_own else timedelta()
        return Due(one, Reason.PAGE, at + pause)
    is_new = now - one.asked_at <= CLOSED_LATELY and at <= one.asked_at + MINUTE
    if is_new:
        return Due(one, Reason.PAGE, at)
    return None


def _of_money(one: WatchedInvoice, is_own: bool, now: datetime) -> Due | None:
    """Due since waiting money may be replaced, joined by more, or dropped."""
    if one.came_at is None:
        return None
    if is_own or one.checked_at < one.came_at:
        return Due(one, Reason.MONEY, one.came_at)
    return Due(one, Reason.MONEY, one.checked_at + _pause(now - one.came_at))


def _pause(age: timedelta) -> timedelta:
    return min(max(age / AGE_PART, SHORTEST_PAUSE), HOUR)
