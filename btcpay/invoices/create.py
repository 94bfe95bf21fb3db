"""Makes an invoice: satoshis at the live price, and an address that nobody was ever given."""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from btcpay.bitcoin.address import address_of
from btcpay.http.clock_skew import REMEDY
from btcpay.merchants.account import stored_account
from btcpay.merchants.branding import checked_line, checked_url
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import News, publish
from btcpay.prices.price import Prices
from btcpay.values.currencies import rounded
from btcpay.values.errors import PriceUnavailable, TooMuch
from btcpay.values.ids import new_id
from btcpay.values.money import CENT, sats_for
from btcpay.values.networks import Network
from btcpay.values.times import to_ms
from schemas.requests import MAX_USD
from storage.database import Database, Row
from storage.queries import invoices, merchants

MS_PER_HOUR = 3_600_000
BTC = "BTC"  # what is asked for in bitcoin is so many satoshis; its page shows dollars beside
PATIENCE_S = 1  # for a currency that is only shown beside dollars, once these are there
log = logging.getLogger(__name__)


class Price(NamedTuple):
    """What one bitcoin costs in dollars, and in `currency`, which may be dollars too."""

    usd: Decimal
    currency: str
    in_currency: Decimal

    def worth_usd(self, amount: Decimal) -> Decimal:
        """What an amount in `currency` is worth, to the cent, at least one."""
        if self.currency == "USD":
            return amount
        return max(rounded(amount * self.usd / self.in_currency, "USD"), CENT)


def live_price(
    db: Database, prices: Prices, merchant_id: int, now: datetime, currency: str | None = None
) -> Price:
    """What one bitcoin costs, to make an invoice in this currency at. Raises PriceUnavailable.

    Without a currency it is made in dollars: then that of the merchant is only shown beside them,
    and need not have a price. There is no price either while most sources say that our clock is
    ahead: a payment in a block before the invoice's date would look older than the invoice.
    """
    asked = currency or db.only(merchants.CURRENCY, id=merchant_id)["currency"]
    if currency is None and asked != "USD":
        prices.of(asked).ask()
    price_usd = prices.usd.current()
    if ahead := prices.usd.clock_ahead(now):
        message = f"the service's clock is {ahead // timedelta(seconds=1)} s ahead"
        log.error("%s of most price sources, so no invoice is made; %s", message, REMEDY)
        raise PriceUnavailable(f"{message}: no invoice is made until it is corrected")
    if asked == "USD":
        return Price(price_usd, "USD", price_usd)
    if asked == BTC:
        return Price(price_usd, BTC, Decimal(1))
    if currency is not None:  # not asked for above: meanwhile an older one would be the answer
        return Price(price_usd, asked, prices.of(asked).current())
    beside = prices.of(asked).known(PATIENCE_S)
    return Price(price_usd, "USD", price_usd) if beside is None else Price(price_usd, asked, beside)


class Order(NamedTuple):
    """What an invoice is made for, validated; without a `life` it never expires.

    `currency` is what the amount is in; None: dollars, which the interface was asked for. `details`
    are columns that are stored as they come. `id`: one that a form has promised already.
    """

    merchant_id: int
    amount: Decimal
    life: timedelta | None
    details: Mapping[str, Any]
    currency: str | None = None
    id: str | None = None


def order_of(
    merchant_id: int,
    wanted: Mapping[str, Any],
    currency: str | None = None,
    reference: str | None = None,
    return_url: str | None = None,
) -> Order:
    """A merchant's order, from what the schema of create-invoice loads, or that of any currency.

    Raises CommandError for a reference or an address of the shop that no page may show.
    """
    details = dict(wanted)
    details["reference"] = None if reference is None else checked_line("reference", reference)
    details["return_url"] = None if return_url is None else checked_url(return_url)
    amount = details.pop("amount" if currency else "amount_usd")
    hours = details.pop("expires_in_hours", None)
    life = None if hours is None else timedelta(milliseconds=int(hours * MS_PER_HOUR))
    return Order(merchant_id, amount, life, details, currency)


def quote(amount: Decimal, currency: str | None, price: Price) -> tuple[int, Decimal]:
    """The satoshis to ask for, and what they are worth in dollars; `currency` as in Order.

    Raises PriceUnavailable for more bitcoin than can exist, TooMuch for more than MAX_USD.
    """
    amount_sats = sats_for(amount, price.in_currency if currency else price.usd)
    if amount_sats is None:
        raise PriceUnavailable("the price of a bitcoin is implausible right now; retry shortly")
    return amount_sats, sellable(price.worth_usd(amount) if currency else amount)


def sellable(amount_usd: Decimal) -> Decimal:
    """The amount. Raises TooMuch for more than MAX_USD."""
    if amount_usd > MAX_USD:
        raise TooMuch(f"the amount is worth more than {MAX_USD:,} USD")
    return amount_usd


def new_invoice(db: Database, network: Network, now: datetime, order: Order, price: Price) -> Row:
    """Stores an invoice, publishes its event, and returns its public row.

    Call it inside `db.write()`: the index is taken in the transaction that stores the invoice.
    Raises what `quote` raises.
    """
    amount_sats, amount_usd = quote(order.amount, order.currency, price)
    account = db.only(merchants.TAKE_INDEX, id=order.merchant_id)
    index = account["next_index"] - 1
    script = stored_account(account["descriptor"]).script(index)
    is_in_btc = order.currency == BTC
    shown = Price(price.usd, "USD", price.usd) if is_in_btc else price
    given = {
        **order.details,
        "id": order.id or new_id("inv"),
        "merchant_id": order.merchant_id,
        "status": "open",
        "amount_sats": amount_sats,
        "amount_usd_quote": str(amount_usd),
        "price_usd": str(price.usd),
        "currency": shown.currency,
        "amount": str(order.amount) if order.currency and not is_in_btc else None,
        "price": str(shown.in_currency),
        "deposit_address": address_of(script, network),
        "script": script.hex(),
        "address_index": index,
        "expires_at": None if order.life is None else to_ms(now + order.life),
        "created_at": to_ms(now),
    }
    row = db.only(invoices.ADD, **invoices.BLANK | given)
    publish(db, given, News(EventKind.INVOICE_CREATED), now)
    return row
