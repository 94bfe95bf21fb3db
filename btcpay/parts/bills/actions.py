"""Creates and ends bills.

A recurring bill is a series: one bill for each period. The row of the series' first
bill has the state of the series.
"""

import logging
from contextlib import suppress
from datetime import date, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from btcpay.invoices import manual, orders, quotes
from btcpay.notify.publish import publish_resource
from btcpay.parts.bills import queries
from btcpay.parts.bills.calendar import MOST_AT_ONCE, due_ms, reminders_ms, renewal_ms
from btcpay.parts.bills.kinds import RESOURCE, BillKind
from btcpay.parts.bills.mail import send_later
from btcpay.parts.bills.models import Bill, BillStatus
from btcpay.prices.price import Prices
from btcpay.settings.settings import Settings
from btcpay.values.errors import ChangeRefused, PriceUnavailable
from btcpay.values.ids import new_id
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import date_of, number_of, to_ms, zone_of
from storage.database import Database
from storage.queries import merchants
from storage.queries.totals import balances
from storage.statement import as_dict, blank, replace

DUE_DAYS = 14
MOST_DAYS = 3650

log = logging.getLogger(__name__)


class Terms(NamedTuple):
    """The terms of payment of a bill, and how often the bill recurs.

    - `due_days`: the number of days within which the bill must be paid.
    - `every`: a period of `calendar.EVERY`; None for a single bill.
    - `until`: the last day on which the series creates a bill; None if it has no end.
    """

    due_days: int = DUE_DAYS
    every: str | None = None
    until: date | None = None


def refuse_unpayable(prices: Prices, now: datetime, order: orders.Order) -> None:
    """Raises TooLittle or TooMuch if the amount cannot be paid at the current exchange rate.

    Does nothing if no exchange rate is available.
    """
    with suppress(PriceUnavailable):
        quotes.quote(prices, now, order)


def make(
    db: Database,
    order: orders.Order,
    terms: Terms,
    now: datetime,
    id: str | None = None,
) -> Bill:
    """Stores a bill with its mails and its event, and returns the bill's row.

    Call this function within `db.write()`. If `terms.every` is given, the bill is the
    first bill of a series. If `id` is None, an id is generated. Raises ChangeRefused
    with the code `until` if the last day of the series is in the past.
    """
    zone = zone_at(db, order.merchant_id)
    id = id or new_id("bil")
    columns = dict(order.details)
    if terms.every:
        first = now.astimezone(zone).replace(tzinfo=None)
        columns["series_id"] = id
        columns |= _series_columns(first, terms.every, terms.until, zone)
    new = blank(
        Bill,
        **columns,
        id=id,
        merchant_id=order.merchant_id,
        amount=str(order.amount),
        currency=order.currency or "USD",
        due_days=terms.due_days,
        every=terms.every,
        number=0,
    )
    return _add(db, new, zone, now)


def _series_columns(
    first: datetime,
    every: str,
    until: date | None,
    zone: ZoneInfo,
) -> dict[str, Any]:
    """Returns the columns of a series' first bill that have the state of the series.

    `first` is the local time of the first bill. Raises ChangeRefused with the code
    `until` if the last day of the series is in the past.
    """
    if until and until < first.date():
        raise ChangeRefused("until", "the last day is over")
    columns = {
        "first_local": first.isoformat(),
        "renews": 1,
        "renews_ms": renewal_ms(first, every, 1, until, zone),
    }
    if until is not None:
        columns["until_day"] = number_of(until)
    return columns


def _add(db: Database, new: Bill, zone: ZoneInfo, now: datetime) -> Bill:
    """Stores an open bill with its due time, its mails and its event. Returns the bill's row."""
    now_ms = to_ms(now)
    bill_due_ms = due_ms(now_ms, new.due_days, zone)
    new = replace(
        new,
        status=BillStatus.OPEN,
        paid="0",
        paid_ms=None,
        created_ms=now_ms,
        due_ms=bill_due_ms,
    )
    bill = db.get(queries.ADD, **as_dict(new))
    mails_ms = {"new": now_ms} | reminders_ms(now_ms, bill_due_ms, zone)
    send_later(db, bill, mails_ms)
    # This loads the row again for the event. Nothing has changed it since ADD.
    return publish_resource(db, RESOURCE, bill.id, BillKind.CREATED, now)


def renew_missed(db: Database, series: Bill, now: datetime) -> None:
    """Creates the missing bills of a series, at most those of one year.

    A bill is missing if its period has begun and it was not created yet. If bills are still
    missing after that, suspends the series (sets `held_ms`) until the owner decides. So
    a clock that is wrong for a moment cannot create thousands of bills. Raises BadRow if
    a stored value is malformed.
    """
    for _ in range(MOST_AT_ONCE[series.every or ""]):
        if not renew(db, series.id, now):
            return
    if db.run(queries.HOLD, id=series.id, now=to_ms(now)):
        log.error(
            "a year of bills of the series %s was made, and more have come due: make them by"
            " `blocktill bill resume %s`, pass over them with --skip, or end it by"
            " `blocktill bill end`",
            series.id,
            series.id,
        )


def renew(db: Database, id: str, now: datetime) -> bool:
    """Creates the bill of the series' next period, unless the period already has one.

    `id` is the series' id. Also stores when the following period begins, computed in
    the merchant's present time zone. A later change of the time zone does not move that
    moment.

    Returns True if the series has moved on to the following period. Returns False and
    changes nothing if the next period has not begun, if the series has ended or is
    suspended, or if another process is faster.

    Raises BadRow if a stored value is malformed.
    """
    with db.write():
        first = db.get(queries.BY_ID, id=id)
        if first.renews_ms is None or first.held_ms is not None:
            return False  # the series has ended or is suspended
        if first.renews_ms > to_ms(now):
            return False  # the period has not begun
        # The merchant's row is not locked here. A payment locks the bill's row first
        # and the merchant's row second, so locking both here could deadlock.
        zone = zone_at(db, first.merchant_id)
        number = first.renews or 0
        next_ms = period_ms(first, number + 1, zone)
        updated_rows = db.run(
            queries.RENEW, id=id, number=number, at=first.renews_ms, next_ms=next_ms
        )
        if updated_rows != 1:
            return False  # another process was faster
        # Undoing a series keeps its paid bills, so this period may have a bill already.
        if not db.get_or_none(queries.OF_PERIOD, series_id=id, number=number):
            _add(db, _next_bill(first, number), zone, now)
    return True


def _next_bill(first: Bill, number: int) -> Bill:
    """Returns a copy of the series' first bill as bill `number`, without the series' state."""
    return replace(
        first,
        id=new_id("bil"),
        number=number,
        first_local=None,
        until_day=None,
        renews=None,
        renews_ms=None,
        stopped_ms=None,
        held_ms=None,
    )


def period_ms(first: Bill, number: int, zone: ZoneInfo) -> int | None:
    """Returns when bill `number` of the series is to be created, in unix milliseconds.

    `first` is the first bill of the series. Returns None if that time is after the last
    day of the series.
    """
    start = datetime.fromisoformat(first.first_local or "")
    until = None
    if first.until_day is not None:
        until = date_of(first.until_day)
    return renewal_ms(start, first.every or "", number, until, zone)


def zone_at(db: Database, merchant_id: int) -> ZoneInfo:
    return zone_of(db.get(merchants.BY_ID, id=merchant_id).timezone)


def end(db: Database, settings: Settings, bill_id: str, now: datetime) -> None:
    """Ends an open bill and its series, and cancels the bill's open invoices.

    If the bill is paid, only the series ends. Raises ChangeRefused with the code
    `not_open` if neither the bill nor its series is open. Raises CommandError if no
    bill has this id.
    """
    with db.write():
        balances.lock(db, RESOURCE.find(db, bill_id).merchant_id)
        bill = db.get(queries.LOCKED, id=bill_id)
        series_id = bill.series_id or bill.id
        has_ended_series = db.run(queries.END_SERIES, id=series_id) == 1
        has_ended_bill = db.run(queries.END, id=bill.id) == 1
        if not has_ended_series and not has_ended_bill:
            raise ChangeRefused(
                "not_open", f"the bill is {bill.status}: there is nothing to end"
            )
        if has_ended_bill:
            publish_resource(db, RESOURCE, bill.id, BillKind.ENDED, now)
            _cancel_open_invoices(db, settings, bill, now)


def _cancel_open_invoices(
    db: Database, settings: Settings, bill: Bill, now: datetime
) -> None:
    for row in db.rows(queries.INVOICES, id=bill.id):
        if row.status == InvoiceStatus.OPEN:
            manual.cancel(db, settings, row.id, now, force=True, where="with its bill")
