"""API operations on the server, the API key, the store, exchange rates and webhooks."""

import json
from decimal import Decimal

from flask import g, request
from orjson import Fragment

from btcpay import __version__
from btcpay.health.state import state_in
from btcpay.invoices.quotes import live_price
from btcpay.notify.receivers import require_room, webhook_url
from btcpay.parts.greenfield import bodies, queries
from btcpay.parts.greenfield.keys import OF_STORE, own_url
from btcpay.parts.greenfield.orders import MONITORED_S, Json
from btcpay.parts.greenfield.transport import NAME, WEBHOOKS
from btcpay.values.errors import CommandError, PriceUnavailable
from btcpay.values.finding import GREEN
from btcpay.values.ids import SECRET_CHARACTERS, new_id, random_base62
from btcpay.values.money import checked_currency
from btcpay.values.times import to_ms
from btcpay.web.service import Service
from schemas.any_case import load_filters
from storage.models import Receiver
from storage.queries import merchants, receivers

# The BTCPay Server version to report. PrestaShop's plug-in rejects versions before
# 1.7.0.
REPORTED_VERSION = "1.13.7"
# A payment method in the form of Greenfield 1.x (a map), since PHP clients cannot read
# the list of 2.x.
METHOD = {
    "paymentMethodId": "BTC-CHAIN",
    "enabled": True,
    "cryptoCode": "BTC",
    "data": {},
}
METHODS = {"BTC": METHOD}


def server_info(service: Service, store: queries.OfMerchant) -> Json:
    """Returns the version to report, and whether the server is synchronised.

    `fullySynched` is true if the service currently finds payments; `/readyz` reports
    the same.
    """
    state = state_in(service.db, service.settings, service.now())
    finds_payments = state.payments == GREEN
    height = 0
    if state.progress:
        height = state.progress.height
    bitcoin = {
        "paymentMethodId": "BTC-CHAIN",
        "cryptoCode": "BTC",
        "available": finds_payments,
    }
    return {
        "version": f"{REPORTED_VERSION}+{__version__}",
        "onion": None,
        "supportedPaymentMethods": ["BTC"],
        "fullySynched": finds_payments,
        "syncStatus": [bitcoin | {"chainHeight": height, "syncHeight": height}],
    }


def current_key(service: Service, store: queries.OfMerchant) -> Json:
    """Returns the API key of this request, with the permissions that it has for its store."""
    permissions = [
        f"{OF_STORE}{permission}:{store.id}"
        for permission in g.caller.permissions.split()
    ]
    _, _, secret = request.headers["Authorization"].strip().partition(" ")
    return {
        "apiKey": secret.strip(),
        "label": store.shop_url,
        "permissions": permissions,
        "userId": f"merchant_{store.merchant_id}",
    }


def list_stores(service: Service, store: queries.OfMerchant) -> list[Json]:
    """Returns a list with the API key's store, the only one that the key has access to."""
    return [get_store(service, store)]


def get_store(service: Service, store: queries.OfMerchant) -> Json:
    """Returns the store with the settings that apply to its orders, in Greenfield's form."""
    settings = service.settings
    confirmations = settings.confirmations.for_usd(Decimal(0))
    return {
        "id": store.id,
        "name": store.name,
        "website": store.shop_url,
        "defaultCurrency": store.currency,
        "invoiceExpiration": settings.link_invoice_expiry_min * 60,
        "monitoringExpiration": MONITORED_S,
        "speedPolicy": bodies.SPEED_NAMES.get(confirmations, "LowSpeed"),
        "paymentTolerance": Fragment(str(settings.underpayment_tolerance_percent)),
        "archived": False,
    }


def store_methods(service: Service, store: queries.OfMerchant) -> Json:
    """Returns the payment methods of a store, by name. The only one is bitcoin."""
    return METHODS


def rates(service: Service, store: queries.OfMerchant) -> list[Json]:
    """Returns the price of one bitcoin for each requested currency pair, such as BTC_EUR.

    If a pair has no price, its entry has the reason.
    """
    filters = load_filters(bodies.RateFilters(), request.args.items(multi=True))
    pairs = filters.get("currencyPair") or [f"BTC_{store.currency}"]
    return [_rate(service, store, pair) for pair in pairs]


def _rate(service: Service, store: queries.OfMerchant, pair: str) -> Json:
    coin, _, currency = pair.upper().partition("_")
    try:
        if coin != "BTC":
            raise CommandError(f"{pair!a} does not begin with BTC_")
        code = checked_currency(currency)
        price = live_price(service.prices, service.now(), code).in_currency
    except (CommandError, PriceUnavailable) as error:
        return {"currencyPair": pair, "rate": None, "errors": [str(error)]}
    return {"currencyPair": f"BTC_{code}", "rate": str(price), "errors": []}


def list_webhooks(service: Service, store: queries.OfMerchant) -> list[Json]:
    rows = service.db.rows(queries.WEBHOOKS, store_id=store.id)
    return [get_webhook(service, store, row) for row in rows]


def get_webhook(service: Service, store: queries.OfMerchant, webhook: Receiver) -> Json:
    """Returns a webhook without its secret, which only `add_webhook` returns.

    `automaticRedelivery` is always true, since failed deliveries are always retried.
    """
    types = []
    if webhook.kinds:
        types = json.loads(webhook.kinds)
    return {
        "id": webhook.id,
        "enabled": webhook.disabled_ms is None,
        "automaticRedelivery": True,
        "url": webhook.url,
        "authorizedEvents": {
            "everything": webhook.kinds is None,
            "specificEvents": types,
        },
    }


def add_webhook(service: Service, store: queries.OfMerchant) -> Json:
    """Stores a webhook, and returns it with its secret.

    An existing webhook with the same URL is replaced, since plug-ins register a webhook
    again each time their settings are saved.
    """
    row = _store_webhook(service, store, None)
    return get_webhook(service, store, row) | {"secret": row.secret}


def change_webhook(
    service: Service, store: queries.OfMerchant, webhook: Receiver
) -> Json:
    return get_webhook(service, store, _store_webhook(service, store, webhook))


def remove_webhook(
    service: Service, store: queries.OfMerchant, webhook: Receiver
) -> Json:
    """Removes the webhook, and with it the deliveries that are not sent yet."""
    service.db.run(receivers.REMOVE, id=webhook.id)
    return {}


def _store_webhook(
    service: Service,
    store: queries.OfMerchant,
    webhook: Receiver | None,
) -> Receiver:
    """Stores the webhook in the request, and returns its row.

    The new values replace `webhook`. If that is None, they replace the webhook with the
    same URL, if there is one. Raises ValidationError if a field is invalid, or if the
    merchant has too many webhooks.
    """
    fields, _ = bodies.read_fields(bodies.NewWebhook())
    url = _checked_url(service, store, fields["url"])
    now_ms = to_ms(service.now())
    disabled_ms = None
    disabled_reason = None
    if not fields["enabled"]:
        disabled_ms = now_ms
        disabled_reason = "its plug-in has switched it off"
    secret = fields.get("secret")
    if not secret and webhook:
        secret = webhook.secret
    with service.db.write():
        id = _claim_id(service, store, webhook, url)
        service.db.run(
            queries.PUT_WEBHOOK,
            id=id,
            merchant_id=store.merchant_id,
            store_id=store.id,
            transport=NAME,
            url=url,
            kinds=_kinds(fields["authorizedEvents"]),
            secret=secret or random_base62(SECRET_CHARACTERS),
            created_ms=now_ms,
            disabled_ms=disabled_ms,
            disabled_reason=disabled_reason,
        )
        return service.db.get(receivers.BY_ID, id=id)


def _checked_url(service: Service, store: queries.OfMerchant, text: str) -> str:
    """Returns the URL of a webhook. Raises ValidationError if it is not within the shop."""
    with bodies.errors_about("url"):
        url = webhook_url(text, service.settings.network)
        own_url(url, store.shop_url)
    return url


def _claim_id(
    service: Service,
    store: queries.OfMerchant,
    webhook: Receiver | None,
    url: str,
) -> str:
    """Returns the id under which the webhook with this URL is to be stored.

    It is the id of `webhook`, else that of the webhook with the same URL, else a new one.
    Another webhook with the same URL is removed. Raises ValidationError if the merchant
    has too many webhooks.
    """
    db = service.db
    # Behind this lock, two requests with the same URL store one webhook.
    db.get(merchants.LOCKED, id=store.merchant_id)
    rows = db.rows(queries.WEBHOOKS, store_id=store.id)
    ids_with_url = [row.id for row in rows if row.url == url]
    if webhook:
        for id in ids_with_url:
            if id != webhook.id:
                db.run(receivers.REMOVE, id=id)
        return webhook.id
    if ids_with_url:
        return ids_with_url[0]
    with bodies.errors_about("url"):
        require_room(db, store.merchant_id)
    return new_id("whk")


def _kinds(events: Json) -> str | None:
    """Returns the names of the events to send to the webhook as a JSON list; None for all."""
    if events["everything"]:
        return None
    names = {name.lower() for name in events.get("specificEvents", ())}
    kinds = [name for name in WEBHOOKS.split() if name.lower() in names]
    return json.dumps(kinds)
