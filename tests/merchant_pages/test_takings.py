"""The sums of thirty days, and their bars: tables of pure cases."""

import pytest

from btcpay.merchant_pages.takings import DAYS, HEIGHT, STEP, Sum, chart_of, first_day, takings

TODAY = 20_000


def day(number, cents, payments=1, unpriced=0):
    sums = {"payments": payments, "unpriced": unpriced, "received_sats": 5, "usd_cents": cents}
    return {"day": number} | sums


NOTHING = Sum()
SUMS = {
    "a shop that took nothing": ([], NOTHING, NOTHING),
    "today is one of the thirty days": (
        [day(TODAY, 250), day(TODAY - 1, 100, payments=2, unpriced=1)],
        Sum(1, 0, 5, 250),
        Sum(3, 1, 10, 350),
    ),
    "the first of them is one too": ([day(TODAY - DAYS + 1, 7)], NOTHING, Sum(1, 0, 5, 7)),
    "the day before it is none": ([day(TODAY - DAYS, 7)], NOTHING, NOTHING),
}


@pytest.mark.parametrize("case", SUMS)
def test_the_sums_of_thirty_days(case):
    rows, today, whole = SUMS[case]
    took = takings(rows, TODAY)
    assert (took.of_today, took.whole, len(took.by_day)) == (today, whole, DAYS)


COMPARED = {
    "nothing before says nothing": (0, 500, None),
    "half as much again": (200, 300, 50),
    "half": (200, 100, -50),
    "nothing any more": (200, 0, -100),
    "to the nearest": (3, 4, 33),
    "the largest that is said": (100, 1099, 999),
    "eleven times as much says nothing": (100, 1100, None),
}


def test_the_comparison_with_the_thirty_days_before():
    for case, (before, now, percent) in COMPARED.items():
        rows = [day(first_day(TODAY), before), day(TODAY, now)]
        assert takings(rows, TODAY).percent == percent, case


@pytest.mark.parametrize(
    ("most", "top"),
    [(0, 200), (200, 200), (201, 400), (1000, 1000), (1001, 2000), (80_000, 80_000)],
)
def test_the_upper_edge_is_a_round_number_whose_half_is_one_too(most, top):
    chart = chart_of(takings([day(TODAY, most)], TODAY).by_day)
    assert chart.top_cents == top and chart.top_cents % 200 == 0
    assert chart.bars[-1].height == max(HEIGHT // 100, -(-most * HEIGHT // top))


def test_bars_stand_in_their_order_on_the_ground_and_a_day_without_a_payment_has_none():
    rows = [day(TODAY - 2, 500), day(TODAY - 1, 1), day(TODAY, 0, unpriced=1)]
    chart = chart_of(takings(rows, TODAY).by_day)
    assert chart.box == f"0 0 {DAYS * STEP} {HEIGHT}"
    assert [bar.day for bar in chart.bars] == list(range(TODAY - DAYS + 1, TODAY + 1))
    assert all(bar.y + bar.height == HEIGHT for bar in chart.bars)
    assert [bar.height for bar in chart.bars[-4:]] == [0, 834, 10, 10]
