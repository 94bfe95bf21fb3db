"""The bars of thirty days as an SVG has them: whole numbers in a box that is stretched. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from btcpay.merchant_pages.takings import Sum

# Units of the box: the page stretches it to any width and height.
STEP, BAR, HEIGHT = 10, 7, 1000
LEAST_TOP_CENTS = 200
# Half of each is a number as round as it is.
ROUND = (2, 4, 6, 8, 10)


@dataclass(frozen=True)
class Bar:
    """One day; `x`, `y` and `height` in the box, whose `y` grows downwards."""

    day: int
    took: Sum
    x: int
    y: int
    height: int


@dataclass(frozen=True)
class Chart:
    """`top_cents` is what the upper edge stands for."""

    bars: list[Bar]
    width: int
    top_cents: int

    @property
    def box(self) -> str:
        """The `viewBox`."""
        return f"0 0 {self.width} {HEIGHT}"


def chart_of(by_day: Mapping[int, Sum]) -> Chart:
    """A bar for each day, in their order; a day that took anything has one that can be seen."""
    top = _round_up(max(took.usd_cents for took in by_day.values()))
    bars = []
    for place, (day, took) in enumerate(by_day.items()):
        height = -(-took.usd_cents * HEIGHT // top)
        height = max(height, HEIGHT // 100) if took.payments else 0
        bars.append(Bar(day, took, place * STEP + (STEP - BAR) // 2, HEIGHT - height, height))
    return Chart(bars, len(bars) * STEP, top)


def _round_up(cents: int) -> int:
    scale = LEAST_TOP_CENTS // ROUND[0]
    while scale * ROUND[-1] < cents:
        scale *= 10
    return next(scale * number for number in ROUND if scale * number >= cents)
