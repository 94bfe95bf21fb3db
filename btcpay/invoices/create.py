"""Makes an invoice: satoshis at the live price, and an address that nobody was ever given."""

import logging
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from btcpay.clock_skew import REMEDY
from btcpay.errors import PriceUnavailable
from btcpay.ids import new_id
from btcpay.money import sats_for_usd
from btcpay.server.service import Service
from btcpay.times import to_ms
from storage.database import Row
from storage.queries import invoices, merchants

MS_PER_HOUR = 3_600_000
log = logging.getLogger(__name__)


def live_price(service: Service) -> Decimal:
    """USD for one bitcoin, to make an invoice at. Raises PriceUnavailable.

    Also while most price sources say that our clock is ahead: such an invoice would be from a time
    to come, and what is paid in a block before that would look older than it.
    """
    price_usd = service.prices.current()
    if ahead := service.prices.clock_ahead(service.now()):
        told = f"the service's clock is {ahead // timedelta(seconds=1)} s ahead"
        log.error("%s of most price sources', so no invoice is made; %s", told, REMEDY)
        raise PriceUnavailable(f"{told}: no invoice is made until it is set right")
    return price_usd


def quote(amount_usd: Decimal, price_usd: Decimal) -> int:
    """Satoshis due, rounded up. Raises PriceUnavailable beyond the bitcoin that can exist."""
    amount_sats = sats_for_usd(amount_usd, price_usd)
    if amount_sats is None:
        raise PriceUnavailable("the BTC/USD price is implausible right now; retry shortly")
    return amount_sats


def life_of(hours: Decimal | None) -> timedelta | None:
    """How long an invoice of that many hours lives, to the millisecond below; None for ever."""
    return None if hours is None else timedelta(milliseconds=int(hours * MS_PER_HOUR))


def mint(
    service: Service,
    merchant_id: int,
    order: Mapping[str, Any],
    price_usd: Decimal,
    life: timedelta | None,
    payment_link_id: str | None = None,
    invoice_id: str | None = None,
) -> Row:
    """Stores an invoice for a validated order, with that life and id, and returns its public row.

    Call it inside `service.db.write()`: the index is taken in the transaction that stores the
    invoice, so that a crash gives out no address, and two callers never get the same.
    """
    db, network, now = service.db, service.settings.network, service.now()
    amount_sats = quote(order["amount_usd"], price_usd)
    account = db.only(merchants.TAKE_INDEX, id=merchant_id)
    index = account["next_index"] - 1
    return db.only(
        invoices.ADD,
        id=invoice_id or new_id("inv"),
        merchant_id=merchant_id,
        payment_link_id=payment_link_id,
        status="open",
        amount_sats=amount_sats,
        amount_usd_quote=str(order["amount_usd"]),
        price_usd=str(price_usd),
        description=order.get("description"),
        customer_email=order.get("customer_email"),
        deposit_address=account.derive(account["xpub"], account["script_type"], index, network),
        address_index=index,
        expires_at=None if life is None else to_ms(now + life),
        created_at=to_ms(now),
        looks=0,
    )
