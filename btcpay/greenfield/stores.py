"""The server, the key and its store, and what a bitcoin costs."""

from decimal import Decimal
from typing import Any

from flask import Response, g, request
from marshmallow import ValidationError
from orjson import Fragment

from btcpay import __version__
from btcpay.greenfield.orders import MONITORED_S, speed_of
from btcpay.health.state import GREEN, state_in
from btcpay.invoices.create import live_price
from btcpay.merchants.shops import named
from btcpay.values.currencies import checked_currency
from btcpay.values.errors import CommandError, PriceUnavailable
from btcpay.web.application import answer
from btcpay.web.service import Service
from storage.database import Row

# PrestaShop refuses what is older than 1.7.0.
SPOKEN = "1.13.7"
# An entry of the map of Greenfield 1.x: clients for PHP cannot read the list of 2.x.
METHOD = {"paymentMethodId": "BTC-CHAIN", "enabled": True, "cryptoCode": "BTC", "data": {}}


def server_info(service: Service, store: Row) -> Response:
    """What is spoken, and whether payments are found now: `/readyz` says the same."""
    state = state_in(service.db, service.settings, service.now())
    is_found = state.found == GREEN
    height = state.progress.height if state.progress else 0
    bitcoin = {"paymentMethodId": "BTC-CHAIN", "cryptoCode": "BTC", "available": is_found}
    return answer(
        {
            "version": f"{SPOKEN}+{__version__}",
            "onion": None,
            "supportedPaymentMethods": ["BTC"],
            "fullySynched": is_found,
            "syncStatus": [bitcoin | {"chainHeight": height, "syncHeight": height}],
        }
    )


def current_key(service: Service, store: Row) -> Response:
    """The key that asks, and what it may do at its store."""
    permissions = [f"{named(one)}:{store['id']}" for one in g.caller.permissions.split()]
    _, _, secret = request.headers["Authorization"].strip().partition(" ")
    return answer(
        {
            "apiKey": secret.strip(),
            "label": store["shop_url"],
            "permissions": permissions,
            "userId": f"merchant_{store['merchant_id']}",
        }
    )


def all_stores(service: Service, store: Row) -> Response:
    return answer([_shown(service, store)])


def one_store(service: Service, store: Row) -> Response:
    return answer(_shown(service, store))


def payment_methods(service: Service, store: Row) -> Response:
    return answer({"BTC": METHOD})


def rates(service: Service, store: Row) -> Response:
    """What a bitcoin costs now, in each of the pairs; why not, where no price is known."""
    pairs = request.args.getlist("currencyPair") or [f"BTC_{store['currency']}"]
    if len(pairs) > 5:
        raise ValidationError("at most five at once", "currencyPair")
    return answer([_rate(service, store, pair) for pair in pairs])


def _rate(service: Service, store: Row, pair: str) -> dict[str, object]:
    coin, _, currency = pair.upper().partition("_")
    try:
        if coin != "BTC":
            raise CommandError(f"{pair!a} does not begin with BTC_")
        asked = checked_currency(currency)
        price = live_price(
            service.db, service.prices, store["merchant_id"], service.now(), asked
        ).in_currency
    except (CommandError, PriceUnavailable) as error:
        return {"currencyPair": pair, "rate": None, "errors": [str(error)]}
    return {"currencyPair": f"BTC_{asked}", "rate": str(price), "errors": []}


def _shown(service: Service, store: Row) -> dict[str, Any]:
    settings = service.settings
    return {
        "id": store["id"],
        "name": store["name"],
        "website": store["shop_url"],
        "defaultCurrency": store["currency"],
        "invoiceExpiration": settings.link_invoice_expiry_min * 60,
        "monitoringExpiration": MONITORED_S,
        "speedPolicy": speed_of(settings.confirmations.for_usd(Decimal(0))),
        "paymentTolerance": Fragment(str(settings.underpayment_tolerance_percent)),
        "archived": False,
    }
