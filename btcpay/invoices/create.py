"""Makes an invoice: satoshis at the live price, and an address that nobody was ever given.

Every order goes this way: `quote` asks for the price while no transaction is open; then
`new_invoice` stores the order in the transaction that ensures it is made once.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import Any, NamedTuple

from btcpay.merchants import account
from btcpay.merchants.branding import checked_url
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import NewEvent, News, publish
from btcpay.prices.price import Prices
from btcpay.settings.mail_settings import checked_address
from btcpay.values.errors import CommandError, PriceUnavailable, TooLittle, TooMuch
from btcpay.values.ids import new_id
from btcpay.values.money import CENT, SATS_PER_BTC, rounded, sats_for, unit_of
from btcpay.values.networks import Network
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.texts import checked_line, typed_texts
from btcpay.values.times import SET_CLOCK, to_ms
from schemas.requests import MAX_USD
from storage.database import Database
from storage.models import Invoice
from storage.queries import invoices, merchants

MS_PER_HOUR = 3_600_000
BTC = "BTC"  # an order in bitcoin has its satoshis without a price; its page shows dollars beside
MAX_SHOWN = 100  # characters of a text that is refused
PATIENCE_S = (
    1  # once dollars have a price, for that of a currency only shown beside them
)
log = logging.getLogger(__name__)


class Price(NamedTuple):
    """The price of one bitcoin in dollars, and in `currency`, which may be dollars too."""

    usd: Decimal
    currency: str
    in_currency: Decimal


class Order(NamedTuple):
    """A request for an invoice, validated; without a `life` it never expires.

    The amount is in `currency`, or in dollars where that is None, as the interface has it.
    `details` are columns that are stored unchanged. `high` is the most that a person could have
    typed, None if no person chose the amount: only a person is told that it is too little.
    """

    merchant_id: int
    amount: Decimal
    life: timedelta | None
    details: Mapping[str, Any]
    currency: str | None = None
    high: Decimal | None = None


class Quote(NamedTuple):
    """An order at the price of a moment: the satoshis to ask for, and their worth in dollars."""

    order: Order
    price: Price
    amount_sats: int
    amount_usd: Decimal


def checked_email(text: str) -> str:
    """A customer's address as it was typed, which mail can be sent to. Raises CommandError."""
    typed = text.strip()
    try:
        checked_address(typed)
    except ValueError as error:
        raise CommandError(f"{typed[:MAX_SHOWN]!a} is not {error}") from None
    return typed


def order_of(
    merchant_id: int,
    wanted: Mapping[str, Any],
    currency: str | None = None,
    high: Decimal | None = None,
) -> Order:
    """A merchant's order from the loaded body of create-invoice, or of its form for any currency.

    `wanted` may have other columns too. Raises CommandError for a reference or a return_url that no
    page may show, and for what a person has typed: a description with signs that cannot be seen, or
    an address that no mail can be sent to.
    """
    details = dict(wanted) if high is None else typed_texts(wanted)
    if high is not None and details.get("customer_email") is not None:
        details["customer_email"] = checked_email(details["customer_email"])
    if details.get("reference") is not None:
        details["reference"] = checked_line("reference", details["reference"])
    if details.get("return_url") is not None:
        details["return_url"] = checked_url(details["return_url"])
    amount = details.pop("amount" if currency else "amount_usd")
    hours = details.pop("expires_in_hours", None)
    life = None if hours is None else timedelta(milliseconds=int(hours * MS_PER_HOUR))
    return Order(merchant_id, amount, life, details, currency, high)


def quote(db: Database, prices: Prices, now: datetime, order: Order) -> Quote:
    """The order at the current price. Raises PriceUnavailable, and what `quote_at` raises."""
    currency = order.currency
    owner_id = order.merchant_id
    if currency is None:
        price = _price_beside(
            prices, now, db.only(merchants.CURRENCY, id=owner_id).currency
        )
    else:
        price = live_price(prices, now, currency)
    dust_limit_sats = 0 if order.high is None else dust_limit_of(db, owner_id)
    return quote_at(price, order, dust_limit_sats)


def live_price(prices: Prices, now: datetime, currency: str) -> Price:
    """The price of one bitcoin. Raises PriceUnavailable.

    Also raises it while most sources say that our clock is ahead: a block's payment could then look
    older than its invoice.
    """
    price_usd = prices.usd.current_price()
    if ahead := prices.usd.time_ahead(now):
        message = f"the service's clock is {ahead // timedelta(seconds=1)} s ahead"
        log.error(
            "%s of most price sources, so no invoice is made; %s", message, SET_CLOCK
        )
        raise PriceUnavailable(f"{message}: no invoice is made until it is corrected")
    known = {"USD": price_usd, BTC: Decimal(1)}
    return Price(
        price_usd,
        currency,
        known.get(currency) or prices.rate_for(currency).current_price(),
    )


def _price_beside(prices: Prices, now: datetime, currency: str) -> Price:
    """The price for an order in dollars, beside which a currency is shown if it has a price."""
    if currency == "USD":
        return live_price(prices, now, "USD")
    rate = prices.rate_for(currency)
    rate.start_refresh()  # meanwhile the dollars are asked for
    price = live_price(prices, now, "USD")
    beside = rate.cached_price(PATIENCE_S)
    if beside is None:
        return price
    return Price(price.usd, currency, beside)


def dust_limit_of(db: Database, merchant_id: int) -> int:
    merchant = db.only(merchants.BY_ID, id=merchant_id)
    return account.dust_limit_of(
        account.stored_account(merchant.descriptor).script(0).hex()
    )


def least_amount(dust_limit_sats: int, price: Decimal, currency: str) -> Decimal:
    """The least amount of the currency that a wallet can send."""
    return (dust_limit_sats * price / SATS_PER_BTC).quantize(
        unit_of(currency), ROUND_CEILING
    )


def quote_at(price: Price, order: Order, dust_limit_sats: int = 0) -> Quote:
    """The order at that price; `dust_limit_sats` is the least that a wallet can send.

    Raises PriceUnavailable for more bitcoin than can exist, TooMuch for more than MAX_USD, and
    TooLittle for less than a wallet can send. If the seller takes no more than that, it is
    accepted, and the invoice's page asks for the least that can be sent.
    """
    amount = order.amount
    high = order.high
    currency = order.currency or "USD"
    of_amount = price.in_currency if order.currency else price.usd
    if (
        high is not None
        and amount
        < (least := least_amount(dust_limit_sats, of_amount, currency))
        <= high
    ):
        raise TooLittle(least, currency)
    amount_sats = sats_for(amount, of_amount)
    if amount_sats is None:
        raise PriceUnavailable(
            "the price of a bitcoin is implausible right now; retry shortly"
        )
    amount_usd = worth_usd(amount, price if order.currency else None)
    return Quote(order, price, amount_sats, amount_usd)


def worth_usd(amount: Decimal, price: Price | None) -> Decimal:
    """The worth in dollars, at least a cent; without a price it is dollars. Raises TooMuch."""
    amount_usd = amount
    if price and price.currency != "USD":
        amount_usd = max(rounded(amount * price.usd / price.in_currency, "USD"), CENT)
    if amount_usd > MAX_USD:
        raise TooMuch(f"the amount is worth more than {MAX_USD:,} USD")
    return amount_usd


def new_invoice(
    db: Database, network: Network, now: datetime, quote: Quote, id: str | None = None
) -> Invoice:
    """Stores an invoice, publishes its event, and returns its public row.

    Call it inside `db.write()`: the index is taken in the transaction that stores the invoice.
    `id` is given where a form determines it.
    """
    order = quote.order
    price = quote.price
    merchant = db.only(merchants.TAKE_INDEX, id=order.merchant_id)
    index = merchant.next_index - 1
    script, address = account.at_index(merchant.descriptor, index, network)
    is_in_btc = order.currency == BTC
    shown = (
        price._replace(currency="USD", in_currency=price.usd) if is_in_btc else price
    )
    given: dict[str, Any] = {
        **order.details,
        "id": id or new_id("inv"),
        "merchant_id": order.merchant_id,
        "status": InvoiceStatus.OPEN,
        "amount_sats": quote.amount_sats,
        "amount_usd_quote": str(quote.amount_usd),
        "price_usd": str(price.usd),
        "currency": shown.currency,
        "amount": str(order.amount) if order.currency and not is_in_btc else None,
        "price": str(shown.in_currency),
        "deposit_address": address,
        "script": script.hex(),
        "address_index": index,
        "expires_at": None if order.life is None else to_ms(now + order.life),
        "created_at": to_ms(now),
    }
    row = db.only(invoices.ADD, **invoices.BLANK | given)
    publish(db, [NewEvent(row, News(EventKind.INVOICE_CREATED))], now)
    return row
