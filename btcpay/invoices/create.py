"""Makes an invoice: satoshis at the live price, and an address that nobody was ever given."""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from btcpay.http.clock_skew import REMEDY
from btcpay.merchants.account import address_of, stored_account
from btcpay.merchants.branding import checked_reference, checked_url
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import News, publish
from btcpay.prices.price import Prices
from btcpay.values.errors import PriceUnavailable
from btcpay.values.ids import new_id
from btcpay.values.money import sats_for_usd
from btcpay.values.networks import Network
from btcpay.values.times import to_ms
from storage.database import Database, Row
from storage.queries import invoices, merchants

MS_PER_HOUR = 3_600_000
PATIENCE_S = 1  # for a second currency, after the dollars are there: it is only information
log = logging.getLogger(__name__)


class Price(NamedTuple):
    """What one bitcoin costs, and in the merchant's second `currency`, if there is one."""

    usd: Decimal
    currency: str | None = None
    in_currency: Decimal | None = None


def live_price(db: Database, prices: Prices, merchant_id: int, now: datetime) -> Price:
    """What one bitcoin costs, to make a merchant's invoice at. Raises PriceUnavailable.

    Also while most price sources say that our clock is ahead: a payment in a block before the
    invoice's date would look older than the invoice. A second currency is optional.
    """
    currency = db.only(merchants.CURRENCY, id=merchant_id)["currency"]
    if currency:
        prices.of(currency).ask()
    price_usd = prices.usd.current()
    if ahead := prices.usd.clock_ahead(now):
        message = f"the service's clock is {ahead // timedelta(seconds=1)} s ahead"
        log.error("%s of most price sources', so no invoice is made; %s", message, REMEDY)
        raise PriceUnavailable(f"{message}: no invoice is made until it is set right")
    in_currency = prices.of(currency).known(PATIENCE_S) if currency else None
    return Price(price_usd, currency if in_currency else None, in_currency)


class Order(NamedTuple):
    """What an invoice is made for, validated; without a `life` it never expires.

    `details` are columns that are stored as they come. `id`: one that a form has promised already.
    """

    merchant_id: int
    amount_usd: Decimal
    life: timedelta | None
    details: Mapping[str, str | None]
    id: str | None = None


def order_of(
    merchant_id: int,
    wanted: Mapping[str, Any],
    reference: str | None = None,
    return_url: str | None = None,
) -> Order:
    """A merchant's order, from what the schema of create-invoice loads.

    Raises CommandError for a reference or an address of the shop that no page may show.
    """
    details = dict(wanted)
    details["reference"] = None if reference is None else checked_reference(reference)
    details["return_url"] = None if return_url is None else checked_url(return_url)
    amount_usd, hours = details.pop("amount_usd"), details.pop("expires_in_hours", None)
    life = None if hours is None else timedelta(milliseconds=int(hours * MS_PER_HOUR))
    return Order(merchant_id, amount_usd, life, details)


def new_invoice(db: Database, network: Network, now: datetime, order: Order, price: Price) -> Row:
    """Stores an invoice, publishes its event, and returns its public row.

    Call it inside `db.write()`: the index is taken in the transaction that stores the invoice.
    Raises PriceUnavailable for more bitcoin than can exist.
    """
    amount_sats = sats_for_usd(order.amount_usd, price.usd)
    if amount_sats is None:
        raise PriceUnavailable("the BTC/USD price is implausible right now; retry shortly")
    account = db.only(merchants.TAKE_INDEX, id=order.merchant_id)
    index = account["next_index"] - 1
    script = stored_account(account["descriptor"]).script(index)
    given = {
        **order.details,
        "id": order.id or new_id("inv"),
        "merchant_id": order.merchant_id,
        "status": "open",
        "amount_sats": amount_sats,
        "amount_usd_quote": str(order.amount_usd),
        "price_usd": str(price.usd),
        "currency": price.currency,
        "price_in_currency": None if price.in_currency is None else str(price.in_currency),
        "deposit_address": address_of(script, network),
        "script": script.hex(),
        "address_index": index,
        "expires_at": None if order.life is None else to_ms(now + order.life),
        "created_at": to_ms(now),
    }
    row = db.only(invoices.ADD, **invoices.BLANK | given)
    publish(db, given, News(EventKind.INVOICE_CREATED), now)
    return row
