"""Sums of sales by day, the scale of their chart, and the page of a month."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

from flask import Response

from btcpay import hooks
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.money import of_minor, places_of
from btcpay.values.times import date_of, day_of, number_of, start_of
from btcpay.web.pages.visit import Line
from storage.models import MerchantDay
from storage.queries.totals import days

# The top of a chart is one of these numbers times a power of ten. Half of it is a round number
# too.
ROUND = (2, 4, 6, 8, 10)


class PaymentSum(NamedTuple):
    """The sum of several payments.

    `unpriced` is the number of payments that have no value, since no exchange rate was
    known. `value_minor` is the value of the others, in minor units (such as cents).
    """

    payments: int = 0
    unpriced: int = 0
    received_sats: int = 0
    value_minor: int = 0


def _total(sums: Iterable[PaymentSum]) -> PaymentSum:
    total = PaymentSum()
    for each in sums:
        total = PaymentSum(
            total.payments + each.payments,
            total.unpriced + each.unpriced,
            total.received_sats + each.received_sats,
            total.value_minor + each.value_minor,
        )
    return total


class SalesReport(NamedTuple):
    """The sales of several days in one currency.

    A sale has the value that it had when it was received. Days on which the shop had
    another currency have no sales here.

    - `by_day`: the sum of each day by the day's number, in order.
    - `whole`: the sum of all these days.
    - `before`: the sum of the days before them.
    """

    currency: str
    by_day: Mapping[int, PaymentSum]
    whole: PaymentSum
    before: PaymentSum

    def value(self, took: PaymentSum) -> Decimal:
        return of_minor(took.value_minor, self.currency)

    def top(self) -> int:
        """Returns the number at the top of the chart: round, and in units of the currency."""
        minor_per_unit = 10 ** places_of(self.currency)
        most_minor = max(day_sum.value_minor for day_sum in self.by_day.values())
        power_of_ten = 1
        while True:
            for number in ROUND:
                top = number * power_of_ten
                if top * minor_per_unit >= most_minor:
                    return top
            power_of_ten *= 10


def sales_reports(
    rows: Sequence[MerchantDay], first: int, last: int, currency: str
) -> list[SalesReport]:
    """Returns a report of the days `first` to `last` for each currency.

    `first` and `last` are numbers of days. The first report is in the shop's
    `currency`, even if it has no payments. Other currencies have a report only if they
    have payments on these days. If `rows` has days before `first`, each report has the
    sum of those days as `before`.
    """
    sums_by_currency: dict[str, dict[int, PaymentSum]] = {currency: {}}
    for row in sorted(rows, key=lambda row: row.currency):
        sums_by_day = sums_by_currency.setdefault(row.currency, {})
        sums_by_day[row.day] = _sum_of(row)
    reports = []
    for code, sums_by_day in sums_by_currency.items():
        by_day = {}
        for day in range(first, last + 1):
            by_day[day] = sums_by_day.get(day, PaymentSum())
        earlier = [day_sum for day, day_sum in sums_by_day.items() if day < first]
        report = SalesReport(code, by_day, _total(by_day.values()), _total(earlier))
        if code == currency or report.whole.payments:
            reports.append(report)
    return reports


def _sum_of(row: MerchantDay) -> PaymentSum:
    return PaymentSum(row.payments, row.unpriced, row.received_sats, row.value_minor)


def sums_to_show(
    reports: Sequence[SalesReport], sum_of: Callable[[SalesReport], PaymentSum]
) -> list[tuple[SalesReport, PaymentSum]]:
    """Selects the sums to show. Returns each with its report, which has the currency.

    `reports` has one report for each currency. `sum_of` picks one sum from a report, for
    example the sum of one day. Sums without any payment are left out. But if all are
    without payments, the result is the sum in the first report, which is in the shop's
    currency.
    """
    pairs = [(report, sum_of(report)) for report in reports]
    with_payments = [pair for pair in pairs if pair[1].payments]
    return with_payments or pairs[:1]


def show_month(visit: Visit) -> Response:
    """Shows the page of the month in `?month=2026-11`; by default, of the current month.

    No month before the shop's first one is offered. One SQL statement loads the days of
    this month and of the month before.
    """
    today = visit.now.astimezone(visit.zone).date()
    earliest = _first_month(visit)
    first = _first_of(visit.query.get("month", ""), earliest, today)
    before = (first - timedelta(days=1)).replace(day=1)
    after = (first + timedelta(days=31)).replace(day=1)
    last = after - timedelta(days=1)
    until = number_of(last)
    own = visit.merchant_id
    db = visit.service.db
    rows = db.rows(days.BETWEEN, first=number_of(before), last=until, merchant_id=own)
    since_ms = start_of(number_of(first), visit.zone)
    before_ms = start_of(number_of(after), visit.zone)
    lines: list[Line] = []
    for part in hooks.of(hooks.MerchantViews):
        if part.month_lines:
            lines += part.month_lines(visit, since_ms, before_ms)
    month_before = None
    if before >= earliest:
        month_before = before
    month_after = None
    if after <= today:
        month_after = after
    # The days of the accountant's file: this month, or the one before if this month has
    # not ended.
    download_days = (first, last)
    if last >= today:
        download_days = (before, first - timedelta(days=1))
    return visit.page(
        "month.html",
        lines=lines,
        charts=sales_reports(rows, number_of(first), until, visit.session.currency),
        first=first,
        last=last,
        before=month_before,
        after=month_after,
        sent=download_days,
        has_sales_to_send=_has_sales(rows, *download_days),
        today=number_of(today),
        date_of=date_of,
    )


def _has_sales(rows: Sequence[MerchantDay], first: date, last: date) -> bool:
    """True if any payment was received on the days `first` to `last`."""
    days_to_send = range(number_of(first), number_of(last) + 1)
    return any(row.payments for row in rows if row.day in days_to_send)


def _first_month(visit: Visit) -> date:
    """Returns the first day of the month in which the shop began, in its time zone."""
    created_ms, first_day = visit.service.db.get(
        days.BEGINNING, merchant_id=visit.merchant_id
    )
    began = day_of(created_ms, visit.zone)
    if first_day is not None:
        began = min(began, first_day)
    return date_of(began).replace(day=1)


def _first_of(month: str, earliest: date, today: date) -> date:
    """Returns the first day of the requested month.

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
