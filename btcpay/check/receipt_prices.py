"""What a receipt is worth when it is recorded: in dollars, and in a second currency."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from btcpay.prices.price import Prices
from btcpay.settlement.values import Receipt, Scan
from btcpay.values.currencies import rounded
from btcpay.values.money import usd_for_sats, value_of_sats
from storage.database import Database
from storage.queries import merchants

# Found later than this, a receipt would get the price of another hour; none is better than that.
RECEIPT_PRICE_AGE = timedelta(hours=1)
PATIENCE_S = 5  # for the second currencies, after the dollars are there: nobody waits for a check


class ReceiptPrices(NamedTuple):
    """Of one bitcoin; `second` by currency, of those that are known."""

    usd: Decimal | None
    second: Mapping[str, Decimal]


NO_PRICES = ReceiptPrices(None, {})


def receipt_prices(db: Database, prices: Prices) -> ReceiptPrices:
    """The prices of now; what cannot be had is not there."""
    currencies = [row["currency"] for row in db.rows(merchants.CURRENCIES)]
    for currency in currencies:
        prices.of(currency).ask()
    price_usd = prices.usd.current_or_none()
    known = {currency: prices.of(currency).known(PATIENCE_S) for currency in currencies}
    return ReceiptPrices(price_usd, {currency: price for currency, price in known.items() if price})


def worth(
    db: Database, merchant_id: int, receipt: Receipt, scan: Scan, now: datetime
) -> dict[str, str | None]:
    """The columns of a payment that say what it is worth: in dollars and in a second currency."""
    is_late = now - receipt.block.mined_at > RECEIPT_PRICE_AGE
    price_usd = None if is_late else scan.price_usd
    usd = None if price_usd is None else usd_for_sats(receipt.amount_sats, price_usd)
    currency = db.only(merchants.CURRENCY, id=merchant_id)["currency"]
    price = None if is_late else scan.second_prices.get(currency)
    value = price and rounded(value_of_sats(receipt.amount_sats, price), currency)
    return {
        "amount_usd_at_receipt": None if usd is None else str(usd),
        "currency": None if value is None else currency,
        "amount_at_receipt": None if value is None else f"{value:f}",
    }
