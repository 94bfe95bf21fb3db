"""The sums of thirty days, their bars, and how the service stands: tables of pure cases."""

from datetime import UTC, datetime, timedelta

import pytest

from btcpay.chain.progress import Progress
from btcpay.merchant_pages.chart import HEIGHT, STEP, chart_of
from btcpay.merchant_pages.standing import standing
from btcpay.merchant_pages.takings import DAYS, Sum, first_day, takings
from btcpay.settings import settings
from btcpay.values.times import to_ms

pytestmark = pytest.mark.both_databases

TODAY = 20_000
NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)


def day(number: int, cents: int, payments: int = 1, unpriced: int = 0) -> dict[str, int]:
    sums = {"payments": payments, "unpriced": unpriced, "received_sats": 5, "usd_cents": cents}
    return {"day": number} | sums


@pytest.mark.parametrize(
    ("rows", "today", "whole"),
    [
        pytest.param([], Sum(), Sum(), id="a shop that took nothing"),
        pytest.param(
            [day(TODAY, 250), day(TODAY - 1, 100, payments=2, unpriced=1)],
            Sum(1, 0, 5, 250),
            Sum(3, 1, 10, 350),
            id="today is one of the thirty days",
        ),
        pytest.param(
            [day(TODAY - DAYS + 1, 7)], Sum(), Sum(1, 0, 5, 7), id="the first of them is one too"
        ),
        pytest.param([day(TODAY - DAYS, 7)], Sum(), Sum(), id="the day before it is none"),
    ],
)
def test_the_sums_of_thirty_days(rows, today, whole):
    took = takings(rows, TODAY)
    assert (took.of_today, took.whole, len(took.by_day)) == (today, whole, DAYS)


@pytest.mark.parametrize(
    ("before", "now", "percent"),
    [
        pytest.param(0, 500, None, id="nothing before says nothing"),
        pytest.param(200, 300, 50, id="half as much again"),
        pytest.param(200, 100, -50, id="half"),
        pytest.param(200, 0, -100, id="nothing any more"),
        pytest.param(3, 4, 33, id="to the nearest"),
        pytest.param(100, 1099, 999, id="the largest that is said"),
        pytest.param(100, 1100, None, id="eleven times as much says nothing"),
    ],
)
def test_the_comparison_with_the_thirty_days_before(before, now, percent):
    rows = [day(first_day(TODAY), before), day(TODAY, now)]
    assert takings(rows, TODAY).percent == percent


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


SHOP = {
    "checked_at": str(to_ms(NOW)),
    "backed_up_at": str(to_ms(NOW)),
    "last_paid": 4,
    "next_index": 6,
    "widest": 3,
    "wallet_gap_limit": 20,
}
BLOCK = Progress(900_000, NOW - timedelta(minutes=7), 0)


def ago(**delta: float) -> str:
    return str(to_ms(NOW - timedelta(**delta)))


@pytest.mark.parametrize(
    ("part", "colour", "shop", "progress"),
    [
        pytest.param("check", "green", {"checked_at": ago(minutes=15)}, BLOCK, id="a check"),
        pytest.param("check", "red", {"checked_at": ago(minutes=16)}, BLOCK, id="an old check"),
        pytest.param("check", "red", {"checked_at": ago(minutes=-16)}, BLOCK, id="a future check"),
        pytest.param("check", "red", {"checked_at": None}, BLOCK, id="no check"),
        pytest.param("chain", "green", {}, BLOCK, id="a chain that is read"),
        pytest.param("chain", "green", {}, None, id="no chain before the first invoice"),
        pytest.param("chain", "yellow", {}, Progress(9, NOW, 1), id="a block to be read"),
        pytest.param(
            "chain", "red", {}, Progress(9, NOW - timedelta(hours=3), 0), id="an old newest block"
        ),
        pytest.param("gap_limit", "green", {"widest": 15}, BLOCK, id="three quarters of the gap"),
        pytest.param("gap_limit", "yellow", {"widest": 16}, BLOCK, id="more than that"),
        pytest.param("gap_limit", "yellow", {"next_index": 20}, BLOCK, id="or since the last"),
        pytest.param("backup", "green", {"backed_up_at": ago(days=3)}, BLOCK, id="a backup"),
        pytest.param("backup", "yellow", {"backed_up_at": ago(days=3.1)}, BLOCK, id="an old one"),
        pytest.param("backup", "yellow", {"backed_up_at": None}, BLOCK, id="no backup"),
    ],
)
def test_how_the_service_stands(part, colour, shop, progress):
    of_mainnet = settings.read(
        {"BTCPAY_NETWORK": "mainnet", "BTCPAY_EXPLORERS": "https://a.example"}
    )
    stands = standing(SHOP | shop, progress, of_mainnet, NOW)
    others = {"check", "chain", "gap_limit", "backup"} - {part}
    assert getattr(stands, part) == colour
    assert {getattr(stands, other) for other in others} == {"green"}
