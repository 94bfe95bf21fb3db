"""Converts orders to satoshis at the current exchange rate.

In this project the "price" is the exchange rate: the price of one bitcoin. Prices are
fetched while no database transaction is open.
"""

import logging
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

from btcpay.invoices.orders import BTC, USD, Order
from btcpay.prices.price import Prices
from btcpay.values.errors import PriceUnavailable, TooLittle, TooMuch
from btcpay.values.money import CENT, SATS_PER_BTC, round_money, sats_for, unit_of
from btcpay.values.times import SET_CLOCK
from schemas.requests import MAX_USD

# A page may show a second currency beside dollars. Once the price of one bitcoin in dollars is
# known, this is the time in seconds to wait for the price in the second currency.
PATIENCE_S = 1
log = logging.getLogger(__name__)


class Price(NamedTuple):
    """The price of one bitcoin in dollars and in `currency`, which may be USD."""

    usd: Decimal
    currency: str
    in_currency: Decimal


class Quote(NamedTuple):
    """An order with its exchange rate, the satoshis to request, and their dollar value."""

    order: Order
    price: Price
    amount_sats: int
    amount_usd: Decimal


def quote(prices: Prices, now: datetime, order: Order) -> Quote:
    """Converts the order to satoshis at the current price of one bitcoin.

    Raises PriceUnavailable if there is no valid price, if this machine's clock is ahead,
    or if the order would be more bitcoin than can exist. Raises TooMuch if the amount is
    worth more than MAX_USD, and TooLittle if it is too small for wallets to send.
    """
    if order.currency is None:
        price = _price_beside(prices, now, order.shown_currency)
    else:
        price = live_price(prices, now, order.currency)
    return quote_at(price, order)


def live_price(prices: Prices, now: datetime, currency: str) -> Price:
    """Returns the current price of one bitcoin in dollars and in `currency`.

    Raises PriceUnavailable if there is no valid price. Also raises PriceUnavailable
    while most price sources say that this machine's clock is ahead: an invoice made now
    could look newer than the block that pays it.
    """
    price_usd = prices.usd.current_price()
    ahead = prices.usd.time_ahead(now)
    if ahead:
        ahead_s = ahead // timedelta(seconds=1)
        message = f"the service's clock is {ahead_s} s ahead"
        reason = f"{message} of most price sources"
        log.error("%s, so no invoice is made; %s", reason, SET_CLOCK)
        raise PriceUnavailable(f"{message}: no invoice is made until it is corrected")
    if currency == USD:
        return Price(price_usd, USD, price_usd)
    if currency == BTC:
        return Price(price_usd, BTC, Decimal(1))
    return Price(price_usd, currency, prices.rate_for(currency).current_price())


def _price_beside(prices: Prices, now: datetime, currency: str) -> Price:
    """Returns the price of one bitcoin in dollars, and in `currency` if it is available.

    Raises PriceUnavailable if the price in dollars is not available.
    """
    if currency == USD:
        return live_price(prices, now, USD)
    rate = prices.rate_for(currency)
    rate.start_refresh()  # runs while the price in dollars is fetched
    price = live_price(prices, now, USD)
    price_in_currency = rate.cached_price(PATIENCE_S)
    if price_in_currency is None:
        return price
    return Price(price.usd, currency, price_in_currency)


def quote_at(price: Price, order: Order) -> Quote:
    """Converts the order to satoshis at this price of one bitcoin.

    Raises PriceUnavailable if the order would be more bitcoin than can exist, and
    TooMuch if it is worth more than MAX_USD.

    Raises TooLittle if a person has entered an amount that is too small for wallets to
    send, but could have entered a larger one. If even the highest permitted amount is
    too small, the order is accepted, and the invoice's page asks for the minimum that
    wallets can send.
    """
    amount = order.amount
    currency = USD
    price_in_currency = price.usd
    conversion = None  # the amount is in dollars already
    if order.currency is not None:
        currency = order.currency
        price_in_currency = price.in_currency
        conversion = price
    if order.high is not None:
        least = least_amount(order.dust_limit_sats, price_in_currency, currency)
        if amount < least <= order.high:
            raise TooLittle(least, currency)
    amount_sats = sats_for(amount, price_in_currency)
    if amount_sats is None:
        raise PriceUnavailable(
            "the price of a bitcoin is implausible right now; retry shortly"
        )
    amount_usd = worth_usd(amount, conversion)
    return Quote(order, price, amount_sats, amount_usd)


def least_amount(dust_limit_sats: int, price: Decimal, currency: str) -> Decimal:
    """Returns the lowest amount in `currency` that a wallet can send.

    `price` is the price of one bitcoin in that currency. The amount is rounded up to
    the currency's smallest unit, such as a cent.
    """
    exact = dust_limit_sats * price / SATS_PER_BTC
    return exact.quantize(unit_of(currency), ROUND_CEILING)


def worth_usd(amount: Decimal, price: Price | None) -> Decimal:
    """Converts an amount in the currency of `price` to dollars.

    If `price` is None, the amount is already in dollars. An amount of another currency
    that is worth less than a cent becomes one cent. Raises TooMuch if the result is
    above MAX_USD.
    """
    amount_usd = amount
    if price and price.currency != USD:
        exact_usd = amount * price.usd / price.in_currency
        amount_usd = max(round_money(exact_usd, USD), CENT)
    if amount_usd > MAX_USD:
        raise TooMuch(f"the amount is worth more than {MAX_USD:,} USD")
    return amount_usd
