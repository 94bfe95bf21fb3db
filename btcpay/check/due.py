"""Why an invoice is to be looked for in the mempool, and since when. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import from_ms

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
# An open page reports each minute; a run in between must not miss it.
ASKED_LATELY = 2 * MINUTE
# After a page was closed, there is one more look within this time.
CLOSED_LATELY = 10 * MINUTE
# A run begins each minute, so at least one begins in this time.
BEFORE_DEADLINE = timedelta(seconds=90)
# At least this long between two looks for one invoice.
AGAIN = timedelta(seconds=10)
# Waiting money, and a page that has been open for an hour, may stay so for days. The pause between
# looks is then an eighth of that time, but at least SHORTEST_PAUSE and at most an hour.
AGE_PART = 8
SHORTEST_PAUSE = 10 * MINUTE
# Failures in a row; then the invoice rests for a minute, two, four, up to an hour.
PATIENCE = 3
# An explorer that allows so many calls an hour is one's own, and calls are not saved.
OWN_PER_HOUR = 10_000
NEVER = from_ms(0)


@dataclass(frozen=True)
class WatchedInvoice:
    """An invoice that may be looked for, with the time when each thing last happened.

    `opened_at`: somebody opened its page; `asked_at`: the page asked. `came_at`: money came that
    still waits; `is_covered`: it is enough. `vanished_at`: money that may come again was missing.
    `failures`: looks in a row that failed.
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
        """The time when its page was opened, or of the last look since then."""
        return max(self.opened_at, self.checked_at)


class Reason(StrEnum):
    ENDED = "its deadline has passed"
    ENDING = "its deadline is near"
    MONEY = "money is on its way"
    PAGE = "somebody is looking at its page"


class DueLook(NamedTuple):
    """An invoice to be looked for, and since when."""

    invoice: WatchedInvoice
    reason: Reason
    at: datetime


def due_look(
    invoice: WatchedInvoice, gone_after: timedelta, per_hour: int, now: datetime
) -> DueLook | None:
    """The look at the mempool that is due for this invoice; None if none is due yet.

    `gone_after`: the network's time after which vanished money is gone. The explorer allows
    `per_hour` calls.
    """
    if _is_resting(invoice, now):
        return None
    is_own = per_hour >= OWN_PER_HOUR
    looks = [_look_for_deadline(invoice, gone_after, now)]
    if is_own or now - invoice.checked_at >= AGAIN:
        looks.append(_look_for_page(invoice, is_own, now))
        looks.append(_look_for_money(invoice, is_own, now))
    for look in looks:
        if look is not None and look.at <= now:
            return look
    return None


def _is_resting(invoice: WatchedInvoice, now: datetime) -> bool:
    """True during the pause after several failures in a row."""
    if invoice.failures < PATIENCE:
        return False
    doublings = min(invoice.failures - PATIENCE, 6)
    pause: timedelta = min(MINUTE * 2**doublings, HOUR)
    return now - invoice.failed_at < pause


def is_waiting(invoice: WatchedInvoice, now: datetime) -> bool:
    """True while somebody looks at its page, and waits for money to be seen."""
    is_page_open = now - invoice.asked_at <= ASKED_LATELY
    return (
        invoice.status == InvoiceStatus.OPEN and is_page_open and not invoice.is_covered
    )


def _look_for_deadline(
    invoice: WatchedInvoice, gone_after: timedelta, now: datetime
) -> DueLook | None:
    """Once after the deadline, or when vanished money is gone.

    If its page was ever opened, also once before the deadline.
    """
    if invoice.status != InvoiceStatus.OPEN or invoice.expires_at is None:
        return None
    near_at = invoice.expires_at - BEFORE_DEADLINE
    if now < invoice.expires_at:
        if invoice.opened_at > NEVER and invoice.checked_at < near_at:
            return DueLook(invoice, Reason.ENDING, near_at)
        return None
    if invoice.checked_at < invoice.expires_at:
        return DueLook(invoice, Reason.ENDED, invoice.expires_at)
    if invoice.came_at:
        return None
    gone_at = max(invoice.expires_at, invoice.vanished_at + gone_after)
    return DueLook(invoice, Reason.ENDED, gone_at)


def _look_for_page(
    invoice: WatchedInvoice, is_own: bool, now: datetime
) -> DueLook | None:
    """While its page is open, and once more after it was closed."""
    if (
        invoice.status != InvoiceStatus.OPEN
        or invoice.is_covered
        or invoice.opened_at == NEVER
    ):
        return None
    at = invoice.waits_since
    if is_waiting(invoice, now):
        open_for = at - invoice.opened_at
        if open_for > HOUR and not is_own:
            at += _pause(open_for)
        return DueLook(invoice, Reason.PAGE, at)
    was_closed_lately = now - invoice.asked_at <= CLOSED_LATELY
    if was_closed_lately and at <= invoice.asked_at + MINUTE:
        return DueLook(invoice, Reason.PAGE, at)
    return None


def _look_for_money(
    invoice: WatchedInvoice, is_own: bool, now: datetime
) -> DueLook | None:
    """Since waiting money may be replaced, joined by more, or dropped."""
    if invoice.came_at is None:
        return None
    if is_own or invoice.checked_at < invoice.came_at:
        return DueLook(invoice, Reason.MONEY, invoice.came_at)
    pause = _pause(now - invoice.came_at)
    return DueLook(invoice, Reason.MONEY, invoice.checked_at + pause)


def _pause(age: timedelta) -> timedelta:
    return min(max(age / AGE_PART, SHORTEST_PAUSE), HOUR)
