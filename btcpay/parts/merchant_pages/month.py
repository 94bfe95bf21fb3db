"""The page of a month: its sales by day, and the accountant's file."""

from collections.abc import Sequence
from datetime import date, timedelta

from flask import Response

from btcpay import hooks
from btcpay.parts.merchant_pages.sales_report import sales_reports
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.times import date_of, day_of, number_of, start_of
from btcpay.web.pages.visit import Line
from storage.models import MerchantDay
from storage.queries.totals import days


def show(visit: Visit) -> Response:
    """Shows the page of the month `?month=`, such as 2026-11; by default, of this month.

    No month before the shop's first one is offered. One SQL statement loads the days of
    this month and of the month before.
    """
    today = visit.now.astimezone(visit.zone).date()
    earliest = _first_month(visit)
    first = _first_of(visit.query.get("month", ""), earliest, today)
    previous_month = (first - timedelta(days=1)).replace(day=1)
    next_month = (first + timedelta(days=31)).replace(day=1)
    last = next_month - timedelta(days=1)
    rows = visit.service.db.rows(
        days.BETWEEN,
        first=number_of(previous_month),
        last=number_of(last),
        merchant_id=visit.merchant_id,
    )
    offered_before = None
    if previous_month >= earliest:
        offered_before = previous_month
    offered_after = None
    if next_month <= today:
        offered_after = next_month
    download_days = _days_to_download(first, last, today)
    return visit.page(
        "month.html",
        lines=_lines_of_parts(visit, first, next_month),
        charts=sales_reports(
            rows, number_of(first), number_of(last), visit.session.currency
        ),
        first=first,
        last=last,
        before=offered_before,
        after=offered_after,
        sent=download_days,
        has_sales_to_send=_has_sales(rows, *download_days),
        today=number_of(today),
        date_of=date_of,
    )


def _days_to_download(first: date, last: date, today: date) -> tuple[date, date]:
    """Returns the first and the last day of the accountant's file.

    They are those of the month from `first` to `last`, or of the month before it if that
    month has not ended.
    """
    if last < today:
        return first, last
    last_before = first - timedelta(days=1)
    return last_before.replace(day=1), last_before


def _lines_of_parts(visit: Visit, first: date, next_month: date) -> list[Line]:
    """Returns the sentences that parts (optional plug-ins) add to the page of a month.

    The month is from the day `first` to the day before `next_month`.
    """
    since_ms = start_of(number_of(first), visit.zone)
    before_ms = start_of(number_of(next_month), visit.zone)
    lines: list[Line] = []
    for part in hooks.of(hooks.MerchantViews):
        if part.month_lines:
            lines += part.month_lines(visit, since_ms, before_ms)
    return lines


def _has_sales(rows: Sequence[MerchantDay], first: date, last: date) -> bool:
    """True if any payment was received on the days `first` to `last`."""
    first_number = number_of(first)
    last_number = number_of(last)
    return any(row.payments for row in rows if first_number <= row.day <= last_number)


def _first_month(visit: Visit) -> date:
    """Returns the first day of the month in which the shop began, in its time zone.

    The shop may have payments before its creation, if the clock was wrong then.
    """
    created_ms, first_day = visit.service.db.get(
        days.BEGINNING, merchant_id=visit.merchant_id
    )
    earliest_day = day_of(created_ms, visit.zone)
    if first_day is not None:
        earliest_day = min(earliest_day, first_day)
    return date_of(earliest_day).replace(day=1)


def _first_of(month: str, earliest: date, today: date) -> date:
    """Returns the first day of the requested `month`, such as "2026-11".

    If the month is invalid, in the future or before `earliest`, returns the first day of
    the current month.
    """
    try:
        first = date.fromisoformat(f"{month}-01")
    except ValueError:
        return today.replace(day=1)
    if earliest <= first <= today:
        return first
    return today.replace(day=1)
