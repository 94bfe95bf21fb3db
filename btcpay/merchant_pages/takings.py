"""What came in on each of the last thirty days, and the sums that the first page shows. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from btcpay.values.money import CENT
from storage.database import Row

DAYS = 30
MOST_PERCENT = 1000  # beyond that a comparison says nothing


@dataclass(frozen=True)
class Sum:
    """What came in; `unpriced` of the payments are in no dollars, since no price was known."""

    payments: int = 0
    unpriced: int = 0
    received_sats: int = 0
    usd_cents: int = 0

    @property
    def usd(self) -> Decimal:
        """Their value at receipt."""
        return self.usd_cents * CENT

    def __add__(self, other: "Sum") -> "Sum":
        return Sum(
            self.payments + other.payments,
            self.unpriced + other.unpriced,
            self.received_sats + other.received_sats,
            self.usd_cents + other.usd_cents,
        )


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
        """What today has taken so far."""
        return self.by_day[self.today]

    @property
    def of_yesterday(self) -> Sum:
        """What the day before took."""
        return self.by_day[self.today - 1]


def first_day(today: int) -> int:
    """From here on the days are needed: thirty, and thirty before them."""
    return today - 2 * DAYS + 1


def takings(rows: Sequence[Row], today: int) -> Takings:
    """The takings of rows from `first_day` on; a day without a row took nothing."""
    found = {
        row["day"]: Sum(row["payments"], row["unpriced"], row["received_sats"], row["usd_cents"])
        for row in rows
    }
    by_day = {day: found.get(day, Sum()) for day in range(today - DAYS + 1, today + 1)}
    before = {day: took for day, took in found.items() if day <= today - DAYS}
    whole = sum(by_day.values(), Sum())
    return Takings(today, by_day, whole, _percent(whole, sum(before.values(), Sum())))


def _percent(now: Sum, before: Sum) -> int | None:
    """To the nearest whole one, half to even."""
    if not before.usd_cents:
        return None
    percent = round(Fraction(100 * (now.usd_cents - before.usd_cents), before.usd_cents))
    return percent if abs(percent) < MOST_PERCENT else None
