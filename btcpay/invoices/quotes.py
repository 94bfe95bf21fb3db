"""A quote: an order at the price of a moment. Prices are asked for while no transaction is open."""

import logging
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

from btcpay.invoices.orders import BTC, USD, Order
from btcpay.prices.price import Prices
from btcpay.values.errors import PriceUnavailable, TooLittle, TooMuch
from btcpay.values.money import CENT, SATS_PER_BTC, rounded, sats_for, unit_of
from btcpay.values.times import SET_CLOCK
from schemas.requests import MAX_USD

# For the price of a currency that is only shown beside dollars, once those have a price.
PATIENCE_S = 1
log = logging.getLogger(__name__)


class Price(NamedTuple):
    """The price of one bitcoin in dollars, and in `currency`, which may be dollars too."""

    usd: Decimal
    currency: str
    in_currency: Decimal


class Quote(NamedTuple):
    """An order at the price of a moment: the satoshis to ask for, and their worth in dollars."""

    order: Order
    price: Price
    amount_sats: int
    amount_usd: Decimal


def quote(prices: Prices, now: datetime, order: Order) -> Quote:
    """The order at the current price. Raises PriceUnavailable, and what `quote_at` raises."""
    if order.currency is None:
        price = _price_beside(prices, now, order.shown_currency)
    else:
        price = live_price(prices, now, order.currency)
    return quote_at(price, order)


def live_price(prices: Prices, now: datetime, currency: str) -> Price:
    """The price of one bitcoin. Raises PriceUnavailable.

    Also raises it while most sources say that our clock is ahead: a block's payment could then look
    older than its invoice.
    """
    price_usd = prices.usd.current_price()
    ahead = prices.usd.time_ahead(now)
    if ahead:
        message = f"the service's clock is {ahead // timedelta(seconds=1)} s ahead"
        log.error(
            "%s of most price sources, so no invoice is made; %s", message, SET_CLOCK
        )
        raise PriceUnavailable(f"{message}: no invoice is made until it is corrected")
    if currency == USD:
        return Price(price_usd, USD, price_usd)
    if currency == BTC:
        return Price(price_usd, BTC, Decimal(1))
    return Price(price_usd, currency, prices.rate_for(currency).current_price())


def _price_beside(prices: Prices, now: datetime, currency: str) -> Price:
    """The price for an order in dollars, beside which a currency is shown if it has a price."""
    if currency == USD:
        return live_price(prices, now, USD)
    rate = prices.rate_for(currency)
    rate.start_refresh()  # meanwhile the dollars are asked for
    price = live_price(prices, now, USD)
    beside = rate.cached_price(PATIENCE_S)
    if beside is None:
        return price
    return Price(price.usd, currency, beside)


def quote_at(price: Price, order: Order) -> Quote:
    """The order at that price.

    Raises PriceUnavailable for more bitcoin than can exist, TooMuch for more than MAX_USD, and
    TooLittle for less than a wallet can send. If the seller takes no more than that, it is
    accepted, and the invoice's page asks for the least that can be sent.
    """
    amount = order.amount
    currency = USD
    price_of_amount = price.usd
    price_of_worth = None
    if order.currency is not None:
        currency = order.currency
        price_of_amount = price.in_currency
        price_of_worth = price
    if order.high is not None:
        least = least_amount(order.dust_limit_sats, price_of_amount, currency)
        if amount < least <= order.high:
            raise TooLittle(least, currency)
    amount_sats = sats_for(amount, price_of_amount)
    if amount_sats is None:
        raise PriceUnavailable(
            "the price of a bitcoin is implausible right now; retry shortly"
        )
    amount_usd = worth_usd(amount, price_of_worth)
    return Quote(order, price, amount_sats, amount_usd)


def least_amount(dust_limit_sats: int, price: Decimal, currency: str) -> Decimal:
    """The least amount of the currency that a wallet can send."""
    exact = dust_limit_sats * price / SATS_PER_BTC
    return exact.quantize(unit_of(currency), ROUND_CEILING)


def worth_usd(amount: Decimal, price: Price | None) -> Decimal:
    """The amount in dollars, at least a cent; without a price it is in dollars. Raises TooMuch."""
    amount_usd = amount
    if price and price.currency != USD:
        amount_usd = max(rounded(amount * price.usd / price.in_currency, USD), CENT)
    if amount_usd > MAX_USD:
        raise TooMuch(f"the amount is worth more than {MAX_USD:,} USD")
    return amount_usd
