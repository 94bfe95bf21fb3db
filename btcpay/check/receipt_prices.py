"""The worth of a receipt when it is recorded: in the merchant's currency, and in dollars."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from btcpay.prices.price import Prices
from btcpay.settlement.values import Receipt, Scan
from btcpay.values.currencies import value_of
from storage.database import Database, Values
from storage.queries import merchants

# A receipt that is found later gets no price, rather than that of another hour.
RECEIPT_PRICE_AGE = timedelta(hours=1)


def is_late(mined_at: datetime, now: datetime) -> bool:
    return now - mined_at > RECEIPT_PRICE_AGE


def receipt_prices(db: Database, prices: Prices) -> Mapping[str, Decimal]:
    """The current prices of one bitcoin by currency, without those that cannot be had."""
    currencies = {"USD", *(row.currency for row in db.rows(merchants.CURRENCIES))}
    for currency in currencies:
        prices.of(currency).ask()  # all at once: they are waited for as long as for one
    known = {currency: prices.of(currency).current_or_none() for currency in currencies}
    return {currency: price for currency, price in known.items() if price is not None}


def worth(db: Database, merchant_id: int, receipt: Receipt, scan: Scan, now: datetime) -> Values:
    """The columns of a payment that say what it is worth, to the nearest of the smallest units."""
    prices = {} if is_late(receipt.block.mined_at, now) else scan.prices
    currency = db.only(merchants.CURRENCY, id=merchant_id).currency
    return {
        "amount_usd_at_receipt": _value(receipt.amount_sats, prices, "USD"),
        "currency": currency,
        "value_at_receipt": _value(receipt.amount_sats, prices, currency),
    }


def _value(amount_sats: int, prices: Mapping[str, Decimal], currency: str) -> str | None:
    price = prices.get(currency)
    return None if price is None else f"{value_of(amount_sats, price, currency):f}"
