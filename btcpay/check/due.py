"""Decides whether an invoice is due for a look at the mempool, and why. Pure.

A look is one query of the mempool for an invoice's address.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import from_ms

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
# A page counts as open for this long after its last poll. An open page polls each minute.
ASKED_LATELY = 2 * MINUTE
# One more look is made within this time after a page was closed.
CLOSED_LATELY = 10 * MINUTE
# How long before the deadline the last look may be made. A run starts each minute, so at least one
# starts in this time.
BEFORE_DEADLINE = timedelta(seconds=90)
# The minimum time between two looks for one invoice.
AGAIN = timedelta(seconds=10)
# A payment may stay unconfirmed, or a page open, for days. The pause between two looks is an eighth
# of that time, but at least SHORTEST_PAUSE and at most an hour.
AGE_PART = 8
SHORTEST_PAUSE = 10 * MINUTE
# From this many failures in a row on there is a back-off of one minute, two, four, up to an hour.
PATIENCE = 3
# An explorer with at least this quota is the operator's own, so that no calls need be saved.
OWN_PER_HOUR = 10_000
NEVER = from_ms(0)


@dataclass(frozen=True)
class WatchedInvoice:
    """An invoice for which the mempool may be queried, with times of past events.

    `checked_at` is when the last query of the mempool succeeded. `opened_at` is when
    the invoice's page was opened, and `asked_at` when the page last polled. `came_at`
    is when the last unconfirmed output was first seen. `is_covered` is True if the
    outputs reach the amount. `vanished_at` is when an unconfirmed output last left the
    mempool; the output may return. `failures` is the number of failed queries in a row,
    and `failed_at` the time of the last failed one.
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
    failures: int = 0
    failed_at: datetime = NEVER

    @property
    def waits_since(self) -> datetime:
        """The time of the last query, or of the opening of the page if that is later."""
        return max(self.opened_at, self.checked_at)


class Reason(StrEnum):
    """Why a look at the mempool is due, as a phrase for people."""

    ENDED = "its deadline has passed"
    ENDING = "its deadline is near"
    MONEY = "money is on its way"
    PAGE = "somebody is looking at its page"


class DueLook(NamedTuple):
    """A query of the mempool for an invoice, with its reason. `at` is when it is due."""

    invoice: WatchedInvoice
    reason: Reason
    at: datetime


def due_look(
    invoice: WatchedInvoice,
    gone_after: timedelta,
    per_hour: int,
    now: datetime,
) -> DueLook | None:
    """Returns the query of the mempool that is due for this invoice; None if none is due.

    `gone_after` is the time for which an output may be missing from the mempool before
    the output counts as gone. `per_hour` is the explorer's quota of calls.
    """
    if _is_resting(invoice, now):
        return None
    is_own = per_hour >= OWN_PER_HOUR
    # In the order of their priority: the first one that is due is returned.
    looks = [_look_for_deadline(invoice, gone_after, now)]
    if is_own or now - invoice.checked_at >= AGAIN:
        looks.append(_look_for_page(invoice, is_own, now))
        looks.append(_look_for_money(invoice, is_own, now))
    for look in looks:
        if look is not None and look.at <= now:
            return look
    return None


def _is_resting(invoice: WatchedInvoice, now: datetime) -> bool:
    """True during the back-off after several failures in a row."""
    if invoice.failures < PATIENCE:
        return False
    doublings = min(invoice.failures - PATIENCE, 6)  # 2**6 minutes are over an hour
    pause: timedelta = min(MINUTE * 2**doublings, HOUR)
    return now - invoice.failed_at < pause


def is_waiting(invoice: WatchedInvoice, now: datetime) -> bool:
    """True while the invoice's page is open and less than the amount has been seen."""
    if invoice.status != InvoiceStatus.OPEN or invoice.is_covered:
        return False
    return now - invoice.asked_at <= ASKED_LATELY


def _look_for_deadline(
    invoice: WatchedInvoice,
    gone_after: timedelta,
    now: datetime,
) -> DueLook | None:
    """Returns the look that the deadline requires; None if none is required now.

    One look follows the deadline. If an output is missing by then, another one follows
    the time when it counts as gone. If the page was ever opened, one look also precedes
    the deadline.
    """
    if invoice.status != InvoiceStatus.OPEN or invoice.expires_at is None:
        return None
    near_at = invoice.expires_at - BEFORE_DEADLINE
    if now < invoice.expires_at:
        was_opened = invoice.opened_at > NEVER
        if was_opened and invoice.checked_at < near_at:
            return DueLook(invoice, Reason.ENDING, near_at)
        return None
    if invoice.checked_at < invoice.expires_at:
        return DueLook(invoice, Reason.ENDED, invoice.expires_at)
    if invoice.came_at:
        return None
    gone_at = max(invoice.expires_at, invoice.vanished_at + gone_after)
    return DueLook(invoice, Reason.ENDED, gone_at)


def _look_for_page(
    invoice: WatchedInvoice,
    is_own: bool,
    now: datetime,
) -> DueLook | None:
    """Returns the look for the invoice's page; None if none is due.

    Looks are due while the page is open, and one more after it was closed. `is_own` is
    True if the explorer is the operator's own.
    """
    expects_money = invoice.status == InvoiceStatus.OPEN and not invoice.is_covered
    was_opened = invoice.opened_at != NEVER
    if not expects_money or not was_opened:
        return None
    due_at = invoice.waits_since
    if is_waiting(invoice, now):
        open_for = due_at - invoice.opened_at
        if open_for > HOUR and not is_own:
            due_at += _pause(open_for)
        return DueLook(invoice, Reason.PAGE, due_at)
    was_closed_lately = now - invoice.asked_at <= CLOSED_LATELY
    was_checked_since = due_at > invoice.asked_at + MINUTE
    if was_closed_lately and not was_checked_since:
        return DueLook(invoice, Reason.PAGE, due_at)
    return None


def _look_for_money(
    invoice: WatchedInvoice,
    is_own: bool,
    now: datetime,
) -> DueLook | None:
    """Returns the look for an unconfirmed output; None if there is none.

    The output may be replaced or dropped, and further ones may arrive. `is_own` is True
    if the explorer is the operator's own.
    """
    if invoice.came_at is None:
        return None
    if is_own or invoice.checked_at < invoice.came_at:
        return DueLook(invoice, Reason.MONEY, invoice.came_at)
    pause = _pause(now - invoice.came_at)
    return DueLook(invoice, Reason.MONEY, invoice.checked_at + pause)


def _pause(age: timedelta) -> timedelta:
    """Returns the pause before the next look, if a payment or an open page has this age."""
    return min(max(age / AGE_PART, SHORTEST_PAUSE), HOUR)
