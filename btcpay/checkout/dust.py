"""What is too little to be sent: a link's page says so of its price, and refuses it as amount."""

from decimal import ROUND_CEILING, Decimal

from btcpay.merchants.account import DUST_SATS
from btcpay.values.money import CENT, SATS_PER_BTC, sats_for_usd
from btcpay.web.service import Service
from storage.database import Row
from storage.queries import merchants

# A link with a higher price need not ask what a bitcoin costs: the dust limit is less than this,
# until a bitcoin costs 900,000 USD.
NO_DUST_USD = Decimal(5)


def dust_of(service: Service, link: Row) -> int | None:
    """The least that can be sent, when a fixed price is less than that; otherwise None.

    Also None when there is no BTC price: then nothing can be paid now.
    """
    if link["amount_usd"] is None or Decimal(link["amount_usd"]) >= NO_DUST_USD:
        return None
    price_usd = service.prices.current_or_none()
    if price_usd is None:
        return None
    least_sats = _least_sats(service, link)
    amount_sats = sats_for_usd(Decimal(link["amount_usd"]), price_usd)
    return least_sats if amount_sats and amount_sats < least_sats else None


def dust_usd_of(service: Service, link: Row, price_usd: Decimal) -> Decimal:
    """The least amount in whole cents that can be sent to a link's merchant at that price."""
    least_usd = _least_sats(service, link) * price_usd / SATS_PER_BTC
    return least_usd.quantize(CENT, ROUND_CEILING)


def _least_sats(service: Service, link: Row) -> int:
    return DUST_SATS[service.db.only(merchants.BY_ID, id=link["merchant_id"])["script_type"]]
