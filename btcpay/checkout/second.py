"""A second currency beside the dollar, as it was when the invoice was made: information alone."""

from dataclasses import dataclass
from decimal import Decimal

from btcpay.values.currencies import rounded
from storage.database import Row


@dataclass(frozen=True)
class Second:
    """What a dollar was worth: the price of a bitcoin in the `currency`, by its price in USD."""

    currency: str
    price: Decimal
    price_usd: Decimal

    def of(self, amount_usd: Decimal) -> Decimal:
        """The amount in the currency, to its smallest unit."""
        return rounded(amount_usd * self.price / self.price_usd, self.currency)


def second_of(row: Row) -> Second | None:
    """Of an invoice's row; None when there was no such price."""
    if row["currency"] is None:
        return None
    prices = (Decimal(row[name]) for name in ("price_in_currency", "price_usd"))
    return Second(row["currency"], *prices)
