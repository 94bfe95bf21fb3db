"""What a link's page works out by while somebody types: prices of now, and how long they hold."""

from typing import Any

from btcpay.values.currencies import places_of
from btcpay.web.service import Service
from storage.database import Row
from storage.queries import merchants

PATIENCE_S = 1  # for the second currency, after the dollars are there


def rates_of(service: Service, link: Row) -> dict[str, Any]:
    """Prices of one bitcoin as text: `usd`, or null; `price` in the merchant's second `currency`.

    `currency` is null without one, and without a price in it; its amounts have `places` decimals.
    After `good_for_ms` there is no price any more.
    """
    prices, beside = service.prices, service.prices.beside
    currency = service.db.only(merchants.CURRENCY, id=link["merchant_id"])["currency"]
    if currency:
        beside.ask(currency)
    usd, good_for_s = prices.current_or_none(), prices.good_for_s()
    rates: dict[str, Any] = {"usd": usd and f"{usd:f}", "currency": None}
    if price := beside.known(currency, PATIENCE_S) if currency else None:
        rates |= {"currency": currency, "price": f"{price:f}", "places": places_of(currency)}
        good_for_s = min(good_for_s, beside.good_for_s(currency))
    return rates | {"good_for_ms": int(good_for_s * 1000)}
