"""The sums of thirty days, and a chart's upper edge: tables of pure cases."""

import pytest

from btcpay.parts.merchant_pages.sales_report import (
    PaymentSum,
    sales_reports,
    sums_to_show,
)
from storage.models import MerchantDay
from storage.statement import blank

TODAY = 20_000
DAYS = 30


def day(number, minor, currency="USD", payments=1, unpriced=0):
    sums = {
        "payments": payments,
        "unpriced": unpriced,
        "received_sats": 5,
        "value_minor": minor,
    }
    return blank(MerchantDay, day=number, currency=currency, **sums)


def thirty_days(rows, currency):
    return sales_reports(rows, TODAY - DAYS + 1, TODAY, currency)


NOTHING = PaymentSum()
SUMS = {
    "a shop that took nothing": ([], NOTHING, NOTHING, NOTHING),
    "today is one of the thirty days": ([day(TODAY, 250), day(TODAY - 1, 100, payments=2,
        unpriced=1)], PaymentSum(1, 0, 5, 250), PaymentSum(3, 1, 10, 350), NOTHING),
    "the first of them is one too": ([day(TODAY - DAYS + 1, 7)], NOTHING,
        PaymentSum(1, 0, 5, 7), NOTHING),
    "the day before it is of those before": ([day(TODAY - DAYS, 7), day(TODAY - DAYS - 1, 3)],
        NOTHING, NOTHING, PaymentSum(2, 0, 10, 10)),
}  # fmt: skip


@pytest.mark.parametrize("case", SUMS)
def test_the_sums_of_thirty_days(case):
    rows, today, whole, before = SUMS[case]
    (took,) = thirty_days(rows, "USD")
    assert (took.by_day[TODAY], took.whole, took.before) == (today, whole, before)
    assert len(took.by_day) == DAYS


def test_two_currencies_are_two_sums_and_never_one():
    rows = [day(TODAY - 1, 700), day(TODAY - 1, 50, "EUR"), day(TODAY, 20, "EUR")]
    rows += [day(TODAY - DAYS, 9_000, "GBP")]  # before the thirty days
    took = thirty_days(rows, "EUR")
    assert [(one.currency, one.whole.value_minor) for one in took] == [
        ("EUR", 70),
        ("USD", 700),
    ]

    def shown(day):
        found = sums_to_show(took, lambda one: one.by_day[day])
        return [f"{one.value(sum)} {one.currency}" for one, sum in found]

    assert shown(TODAY - 1) == ["0.50 EUR", "7.00 USD"]
    assert shown(TODAY) == ["0.20 EUR"]
    assert shown(TODAY - 2) == ["0.00 EUR"]


TOPS = {
    "USD": [(0, 2), (200, 2), (201, 4), (1000, 10), (1001, 20), (80_000, 800)],
    "JPY": [(0, 2), (2, 2), (3, 4), (11, 20), (80_000, 80_000)],
    "KWD": [(0, 2), (2000, 2), (2001, 4), (11_000, 20)],
}


@pytest.mark.parametrize("currency", TOPS)
def test_the_upper_edge_is_a_round_number_whose_half_is_one_too(currency):
    for most, top in TOPS[currency]:
        (took,) = thirty_days([day(TODAY, most, currency)], currency)
        assert took.top() == top
