"""What came in on each of the last thirty days: its sums, and its bars for the page. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from btcpay.values.money import CENT
from storage.database import Row

DAYS = 30
MOST_PERCENT = 1000  # beyond that a comparison says nothing

# Units of the chart's box: the page stretches it to any width and height.
STEP, BAR, HEIGHT = 10, 7, 1000
LEAST_TOP_CENTS = 200
ROUND = (2, 4, 6, 8, 10)  # half of each is a number as round as it is


class Sum(NamedTuple):
    """What came in; `unpriced` of the payments are in no dollars, since no price was known."""

    payments: int = 0
    unpriced: int = 0
    received_sats: int = 0
    usd_cents: int = 0

    @property
    def usd(self) -> Decimal:
        """Their value at receipt."""
        return self.usd_cents * CENT


def _total(sums: Iterable[Sum]) -> Sum:
    return Sum(*map(sum, zip(Sum(), *sums, strict=True)))


@dataclass(frozen=True)
class Takings:
    """`by_day`: the last thirty days from the first to `today`, each with what it took.

    A day is a number of UTC days since 1970. `percent`: how much more (or less) the thirty days
    took than the thirty before, None where that says nothing.
    """

    today: int
    by_day: Mapping[int, Sum]
    whole: Sum
    percent: int | None

    @property
    def of_today(self) -> Sum:
        return self.by_day[self.today]

    @property
    def of_yesterday(self) -> Sum:
        return self.by_day[self.today - 1]


def first_day(today: int) -> int:
    """From here on the days are needed: thirty, and thirty before them."""
    return today - 2 * DAYS + 1


def takings(rows: Sequence[Row], today: int) -> Takings:
    """The takings of rows from `first_day` on; a day without a row took nothing."""
    found = {row["day"]: Sum(*(row[name] for name in Sum._fields)) for row in rows}
    by_day = {day: found.get(day, Sum()) for day in range(today - DAYS + 1, today + 1)}
    before = _total(took for day, took in found.items() if day <= today - DAYS)
    whole = _total(by_day.values())
    return Takings(today, by_day, whole, _percent(whole, before))


def _percent(now: Sum, before: Sum) -> int | None:
    """To the nearest whole one, half to even."""
    if not before.usd_cents:
        return None
    percent = round(Fraction(100 * (now.usd_cents - before.usd_cents), before.usd_cents))
    return percent if abs(percent) < MOST_PERCENT else None


@dataclass(frozen=True)
class Bar:
    """One day; `x`, `y` and `height` in the chart's box, whose `y` grows downwards."""

    day: int
    took: Sum
    x: int
    y: int
    height: int


@dataclass(frozen=True)
class Chart:
    """`top_cents` is what the upper edge stands for; `box`: an SVG's viewBox."""

    bars: list[Bar]
    box: str
    top_cents: int


def chart_of(by_day: Mapping[int, Sum]) -> Chart:
    """A bar for each day, in their order; a day that took anything has one that can be seen."""
    top = _round_up(max(took.usd_cents for took in by_day.values()))
    bars = []
    for place, (day, took) in enumerate(by_day.items()):
        height = -(-took.usd_cents * HEIGHT // top)
        height = max(height, HEIGHT // 100) if took.payments else 0
        bars.append(Bar(day, took, place * STEP + (STEP - BAR) // 2, HEIGHT - height, height))
    return Chart(bars, f"0 0 {len(bars) * STEP} {HEIGHT}", top)


def _round_up(cents: int) -> int:
    scale = LEAST_TOP_CENTS // ROUND[0]
    while scale * ROUND[-1] < cents:
        scale *= 10
    return next(scale * number for number in ROUND if scale * number >= cents)
