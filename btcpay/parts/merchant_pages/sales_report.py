"""Sums of sales by day, and the scale of their chart."""

from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from btcpay.values.money import of_minor, places_of
from storage.models import MerchantDay

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
