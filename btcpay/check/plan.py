"""Plans for which invoices the mempool is queried. Pure.

A payment is always found in its block. The mempool only shows it sooner. So looks at
the mempool are made for people who wait, within the hourly quota of calls
(docs/operators/budget.md):

1. `due_look` decides whether and why a look for an invoice is due: an open page, a
   deadline, or an unconfirmed payment.
2. `shares` divides the calls between pages and the other looks.
3. `plan` chooses that many of each, the longest wait first.
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

# A page should show a payment within this time. Calls that pages do not use are saved for as long.
SEEN_WITHIN = 5 * MINUTE
# If more pages than this were opened in the same minute, they have one visitor's priority together.
FLOOD = 10
# Calls per hour that are reserved for headers and blocks: 80, but at most a quarter of the quota. A
# sixteenth of them must be left at any moment.
RESERVED_CALLS = 80
RESERVED_PART = 4
RESERVED_NOW = 16
# The pages' share of the other calls, if looks for payments or deadlines are due too.
PAGES_PART = 0.75


class Plan(NamedTuple):
    """The looks at the mempool (queries for an address) that are to be made now.

    - `ids`: the ids of the invoices to look for, in this order.
    - `unreached`: the ids of invoices that get no look now, although a payer has waited
      too long at the open page.
    - `put_off`: the number of other looks (for an unconfirmed payment, or a deadline)
      that are due, but must wait for the next run.
    """

    ids: list[str]
    unreached: list[str]
    put_off: int


def plan(
    candidates: Iterable[WatchedInvoice],
    gone_after: timedelta,
    allowance: Allowance,
    now: datetime,
    ends_before: datetime = NEVER,
    others_wait: bool | None = None,
) -> Plan:
    """Chooses for which invoices to query the mempool now.

    There are two kinds of queries, and each kind gets its share of the calls:

    1. for open pages, also shortly before a deadline (PAGE, ENDING),
    2. for unconfirmed payments and after deadlines (MONEY, ENDED).

    - `gone_after`: see `due_look`.
    - `ends_before`: an invoice whose deadline is later cannot expire yet, so no ENDED
      query is made for it.
    - `others_wait`: None during a run of the check, the only time at which MONEY
      queries are made. Between two runs, it is True if the last run has postponed
      queries of the second kind, else False.
    """
    invoices = list(candidates)
    pages: list[DueLook] = []
    others: list[DueLook] = []
    for invoice in invoices:
        look = due_look(invoice, gone_after, allowance.per_hour, now)
        if look is None:
            continue
        may_expire = look.reason is Reason.ENDED and look.at <= ends_before
        is_money_in_run = look.reason is Reason.MONEY and others_wait is None
        if look.reason in (Reason.PAGE, Reason.ENDING):
            pages.append(look)
        elif may_expire or is_money_in_run:
            others.append(look)
    pages = _sort_pages(pages, now)
    others = _sort_others(others)
    are_others_due = bool(others_wait or others)
    share = shares(allowance, invoices, are_others_due, now)
    looks = pages[: share.pages] + others[: share.others]
    late_pages = pages[share.pages :]
    late_others = others[share.others :]
    return Plan(
        ids=[look.invoice.id for look in looks],
        unreached=_unreached(late_pages, now),
        put_off=len(late_others),
    )


def _unreached(left_out: Iterable[DueLook], now: datetime) -> list[str]:
    """Returns the ids of the invoices in `left_out` whose payer has waited too long."""
    unreached = []
    for look in left_out:
        is_late = now - look.at > SEEN_WITHIN
        if is_late and is_waiting(look.invoice, now):
            unreached.append(look.invoice.id)
    return unreached


def _sort_others(others: list[DueLook]) -> list[DueLook]:
    """Sorts the looks for payments and deadlines by priority.

    1. Invoices with fewer failed looks come first.
    2. The longest wait comes first.
    3. If two have waited equally long, the deadline comes before the payment.
    """

    def order(look: DueLook) -> tuple[int, datetime, bool]:
        return (look.invoice.failures, look.at, look.reason is Reason.MONEY)

    return sorted(others, key=order)


def _sort_pages(pages: list[DueLook], now: datetime) -> list[DueLook]:
    """Sorts the looks for pages by priority.

    1. Pages that were opened within the last hour come before others.
    2. Pages that have polled come before those that were only opened.
    3. Invoices near their deadline come before others.
    4. The longest wait comes first. If more than FLOOD pages were opened in the same minute,
       the wait of each is divided by their number.
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


class Shares(NamedTuple):
    """The number of looks that may be made now: for pages, and for other reasons."""

    pages: int
    others: int


def shares(
    allowance: Allowance,
    candidates: Iterable[WatchedInvoice],
    others_wait: bool,
    now: datetime,
) -> Shares:
    """Divides the calls that may be made now between pages and other looks.

    The other looks are for payments and deadlines. `others_wait` is True if some of
    them are due.

    1. Some calls are reserved for headers and blocks.
    2. If looks of both kinds are due, pages get three quarters of the remaining calls
       per minute, and the other looks a quarter. If only one kind is due, it gets all.
    3. Pages also get the calls that were saved since the last look for a page, at most
       those of five minutes.
    """
    reserved = min(RESERVED_CALLS, allowance.per_hour // RESERVED_PART)
    reserved_now = reserved // RESERVED_NOW
    available = max(0, allowance.left - reserved_now)
    # Calls per minute: of all looks, then the share of each kind.
    minutely = min(allowance.minutely, allowance.per_hour / 60)
    minutely = max(0.0, minutely - reserved / 60)
    pages_minutely = minutely
    if others_wait:
        pages_minutely = minutely * PAGES_PART
    others_minutely = minutely
    opened = [invoice for invoice in candidates if invoice.opened_at > NEVER]
    if any(is_waiting(invoice, now) for invoice in opened):
        others_minutely = minutely * (1 - PAGES_PART)
    last_look_at = _last_look_at(opened, now)
    for_pages = _calls_between(last_look_at, now, pages_minutely)
    for_others = _calls_between(now - MINUTE, now, others_minutely)
    return Shares(min(available, for_pages), min(available, for_others))


def _last_look_at(opened: Iterable[WatchedInvoice], now: datetime) -> datetime:
    """Returns when the last look for one of these pages was made, or failed.

    Returns SEEN_WITHIN before now if that is later.
    """
    last_look_at = now - SEEN_WITHIN
    for invoice in opened:
        last_look_at = max(last_look_at, invoice.checked_at, invoice.failed_at)
    return last_look_at


def _calls_between(since: datetime, now: datetime, minutely: float) -> int:
    """Returns the whole number of calls in this period, at `minutely` calls per minute.

    It counts from the epoch, so that fractions of a call add up over several periods.
    """
    since_min = since.timestamp() / 60
    now_min = now.timestamp() / 60
    before = int(since_min * minutely)
    after = int(now_min * minutely)
    return max(0, after - before)
