"""Plans which invoices are looked for in the mempool, by a run or by a look after it. Pure.

A block settles every payment, whether anybody looks or not; the mempool only shows it sooner. So
the mempool is asked for those who wait, as far as the hour's calls go (docs/operators/budget.md):

1. `due_look` says why an invoice is to be looked for now: an open page, a deadline, money on its
   way.
2. `shares` says how many looks there may be for pages, and how many for the others.
3. `plan` takes as many of each, the longest wait first.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from btcpay.chain.sources import Allowance
from btcpay.check.due import (
    HOUR,
    MINUTE,
    NEVER,
    DueLook,
    Reason,
    WatchedInvoice,
    due_look,
    is_waiting,
)

# A payment is shown on its page within this time; calls are saved for as long.
SEEN_WITHIN = 5 * MINUTE
# Pages opened in a minute; more are taken for one visitor's, and are looked for as one.
FLOOD = 10
# Calls an hour that headers and blocks keep, but at most a quarter of the budget; a sixteenth of
# these calls must be left at any moment.
RESERVED_CALLS = 80
RESERVED_PART = 4
RESERVED_NOW = 16
# The pages' part of the other calls, while money or deadlines wait too.
PAGES_PART = 0.75


class Plan(NamedTuple):
    """`ids`: the invoices to look for, in order; `put_off`: how many others are left for later.

    `unreached`: those whose payer waits too long for a call.
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
    invoices = list(watched)
    pages: list[DueLook] = []
    others: list[DueLook] = []
    for invoice in invoices:
        look = due_look(invoice, gone_after, allowance.per_hour, now)
        if look is None:
            continue
        is_judged = look.reason is Reason.ENDED and look.at <= ends_before
        is_money = look.reason is Reason.MONEY and others_wait is None
        if look.reason in (Reason.PAGE, Reason.ENDING):
            pages.append(look)
        elif is_judged or is_money:
            others.append(look)
    pages = _sort_pages(pages, now)
    # A deadline comes before money that waits as long.
    others.sort(
        key=lambda look: (look.invoice.failures, look.at, look.reason is Reason.MONEY)
    )
    for_pages, for_others = shares(
        allowance, invoices, bool(others_wait or others), now
    )
    unreached = [
        look.invoice.id
        for look in pages[for_pages:]
        if is_waiting(look.invoice, now) and now - look.at > SEEN_WITHIN
    ]
    chosen = pages[:for_pages] + others[:for_others]
    ids = [look.invoice.id for look in chosen]
    return Plan(ids, unreached, put_off=len(others[for_others:]))


def _sort_pages(pages: list[DueLook], now: datetime) -> list[DueLook]:
    """Invoices whose time to pay is ending come first, then those that have waited longest.

    After them come pages that were opened and have not asked again, and last those that have been
    open for more than an hour. Pages of a flood divide their wait among them.
    """
    opened_in_minute = Counter(_opening_minute(look.invoice) for look in pages)

    def order(look: DueLook) -> tuple[bool, bool, bool, timedelta]:
        invoice = look.invoice
        wait = now - invoice.waits_since
        opened_together = opened_in_minute[_opening_minute(invoice)]
        if opened_together > FLOOD:
            wait /= opened_together
        is_open_long = now - invoice.opened_at > HOUR
        has_asked_once = invoice.asked_at == invoice.opened_at
        is_ending = look.reason is Reason.ENDING
        return (is_open_long, has_asked_once, not is_ending, -wait)

    return sorted(pages, key=order)


def _opening_minute(invoice: WatchedInvoice) -> float:
    return invoice.opened_at.timestamp() // 60


def shares(
    allowance: Allowance,
    watched: Iterable[WatchedInvoice],
    others_wait: bool,
    now: datetime,
) -> tuple[int, int]:
    """Looks that may be made now, for pages and for others.

    Headers and blocks keep their part of what lasts. Pages have three quarters of the rest that
    came since the last look for one, and the others a quarter of what a minute brings; each has all
    of it if the other waits for nothing.
    """
    reserved = min(RESERVED_CALLS, allowance.per_hour // RESERVED_PART)
    available = max(0, allowance.left - reserved // RESERVED_NOW)
    minutely = min(allowance.minutely, allowance.per_hour / 60) - reserved / 60
    minutely = max(0.0, minutely)
    for_pages = minutely
    if others_wait:
        for_pages = minutely * PAGES_PART
    for_others = minutely
    last_look_at = now - SEEN_WITHIN
    for invoice in watched:
        if invoice.opened_at > NEVER:
            last_look_at = max(last_look_at, invoice.checked_at, invoice.failed_at)
            if is_waiting(invoice, now):
                for_others = minutely * (1 - PAGES_PART)
    calls_for_pages = _calls_between(last_look_at, now, for_pages)
    calls_for_others = _calls_between(now - MINUTE, now, for_others)
    return min(available, calls_for_pages), min(available, calls_for_others)


def _calls_between(since: datetime, now: datetime, minutely: float) -> int:
    """Counted by the clock's minutes, so that no fraction of a call is lost from look to look."""
    before = int(since.timestamp() / 60 * minutely)
    after = int(now.timestamp() / 60 * minutely)
    return max(0, after - before)
