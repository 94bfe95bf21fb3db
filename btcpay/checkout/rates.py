"""What a link's page works out by while somebody types: the price of now, and how long it holds."""

from typing import Any

from btcpay.server.service import Service


def rates_of(service: Service) -> dict[str, Any]:
    """`usd`: the price of one bitcoin as text, or null. After `good_for_ms` it is none any more."""
    price_usd = service.prices.current_or_none()
    return {
        "usd": None if price_usd is None else f"{price_usd:f}",
        "good_for_ms": int(service.prices.good_for_s() * 1000),
    }
