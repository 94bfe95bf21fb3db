"""Sums of sales by day, the scale of their chart, and the page of a month."""

from collections.abc import Callable, Collection, Mapping, Sequence
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

    - `payments`: the number of all these payments.
    - `unpriced`: the number of those that have no value, since no exchange rate was known.
    - `received_sats`: the satoshis of all payments.
    - `value_minor`: the value of the payments that have one, in minor units (such as
      cents).
    """

    payments: int = 0
    unpriced: int = 0
    received_sats: int = 0
    value_minor: int = 0


def _total(sums: Collection[PaymentSum]) -> PaymentSum:
    return PaymentSum(
        payments=sum(day_sum.payments for day_sum in sums),
        unpriced=sum(day_sum.unpriced for day_sum in sums),
        received_sats=sum(day_sum.received_sats for day_sum in sums),
        value_minor=sum(day_sum.value_minor for day_sum in sums),
    )


class SalesReport(NamedTuple):
    """The sales of several days in one currency.

    A sale has the value that it had when it was received. Days on which the shop had
    another currency have no sales here.

    - `by_day`: the sum of each day, by the day's number, in order.
    - `whole`: the sum of all days in `by_day`.
    - `before`: the sum of the period before these days, for comparison.
    """

    currency: str
    by_day: Mapping[int, PaymentSum]
    whole: PaymentSum
    before: PaymentSum

    def value(self, payment_sum: PaymentSum) -> Decimal:
        return of_minor(payment_sum.value_minor, self.currency)

    def top(self) -> int:
        """Returns the number at the top of the chart, in units of the currency.

        It is the lowest round number that is not below the best day's value.
        """
        minor_per_unit = 10 ** places_of(self.currency)
        best_day_minor = max(day_sum.value_minor for day_sum in self.by_day.values())
        power_of_ten = 1
        while True:
            for number in ROUND:
                top = number * power_of_ten
                if top * minor_per_unit >= best_day_minor:
                    return top
            power_of_ten *= 10


def sales_reports(
    rows: Sequence[MerchantDay], first: int, last: int, currency: str
) -> list[SalesReport]:
    """Returns a report of the days `first` to `last` for each currency.

    `first` and `last` are numbers of days. The first report is in the shop's
    `currency`, even if it has no payments. Another currency has a report only if it has
    payments on these days. `rows` may also have days before `first`; their sum is the
    report's `before`.
    """
    # The shop's currency comes first, the others follow by their codes.
    sums_by_currency: dict[str, dict[int, PaymentSum]] = {currency: {}}
    for row in sorted(rows, key=lambda row: row.currency):
        sums_by_day = sums_by_currency.setdefault(row.currency, {})
        sums_by_day[row.day] = _sum_of(row)
    reports = []
    for code, sums_by_day in sums_by_currency.items():
        report = _report_of(code, sums_by_day, first, last)
        if code == currency or report.whole.payments:
            reports.append(report)
    return reports


def _report_of(
    currency: str, sums_by_day: Mapping[int, PaymentSum], first: int, last: int
) -> SalesReport:
    """Returns the report of the days `first` to `last` in one currency."""
    by_day = {}
    for day in range(first, last + 1):
        by_day[day] = sums_by_day.get(day, PaymentSum())
    earlier_sums = [day_sum for day, day_sum in sums_by_day.items() if day < first]
    return SalesReport(
        currency,
        by_day,
        whole=_total(by_day.values()),
        before=_total(earlier_sums),
    )


def _sum_of(row: MerchantDay) -> PaymentSum:
    return PaymentSum(row.payments, row.unpriced, row.received_sats, row.value_minor)


def sums_to_show(
    reports: Sequence[SalesReport], sum_of: Callable[[SalesReport], PaymentSum]
) -> list[tuple[SalesReport, PaymentSum]]:
    """Returns pairs of a report and the sum that `sum_of` picks from it.

    Each report has its own currency. `sum_of` returns, for example, the sum of one day.
    Reports whose sum has no payments are left out. If all would be left out, the first
    report is returned, which is in the shop's currency.
    """
    pairs = [(report, sum_of(report)) for report in reports]
    with_payments = [pair for pair in pairs if pair[1].payments]
    return with_payments or pairs[:1]


def show_month(visit: Visit) -> Response:
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
