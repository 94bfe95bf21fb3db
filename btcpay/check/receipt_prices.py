"""Returns the prices with which payments are valued when their block is read."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from btcpay.prices.price import Prices
from storage.database import Database
from storage.queries import merchants

# A payment that is found later than this after its block has no value at receipt: the price at that
# time is not known.
RECEIPT_PRICE_AGE = timedelta(hours=1)


def is_late(mined_at: datetime, now: datetime) -> bool:
    """True if a block is found so late that the price at its time is not known."""
    return now - mined_at > RECEIPT_PRICE_AGE


def receipt_prices(db: Database, prices: Prices) -> Mapping[str, Decimal]:
    """Returns the prices of one bitcoin by currency, for the merchants' currencies and USD.

    Prices that are too old are refreshed first. A currency is missing if its price is
    unknown.
    """
    currencies = {"USD", *(row.currency for row in db.rows(merchants.CURRENCIES))}
    # All refreshes run at the same time, so that the wait is that of the slowest one.
    for currency in currencies:
        prices.rate_for(currency).start_refresh()
    by_currency: dict[str, Decimal] = {}
    for currency in currencies:
        price = prices.rate_for(currency).current_price_or_none()
        if price is not None:
            by_currency[currency] = price
    return by_currency
