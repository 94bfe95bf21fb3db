"""Makes the WSGI application. Has the operations of the API, with their views.

The first line of each view's docstring is part of the OpenAPI document.
"""

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Any

from flask import Blueprint, Flask, Response
from werkzeug.middleware.proxy_fix import ProxyFix

from btcpay import hooks
from btcpay.api import blueprint as api
from btcpay.api.call import Call, Operation
from btcpay.checkout import views as checkout
from btcpay.health.figures import Figures
from btcpay.health.scrape import MetricsServer
from btcpay.invoices import create, orders, quotes
from btcpay.invoices.links import new_link
from btcpay.settings.settings import Settings
from btcpay.values.ids import is_id
from btcpay.values.money import value_of
from btcpay.values.times import utc_now
from btcpay.web import access_log, readyz
from btcpay.web.errors import as_api_error, error_response
from btcpay.web.paths import json_response, normalize_http
from btcpay.web.service import Service, open_service
from schemas import queries
from schemas import requests as accepts
from schemas import resources as shows
from storage.database import sqlite_path
from storage.queries import invoices, links, payments
from storage.queries.totals import balances
from storage.statement import as_dict


def get_balance(call: Call) -> Response:
    """The balance in satoshis, and the confirmed part in dollars if there is a price."""
    row = call.service.db.get(balances.OF_MERCHANT, merchant_id=call.merchant_id)
    price_usd = call.service.prices.usd.current_price_or_none()
    confirmed_usd = None
    if price_usd is not None:
        confirmed_usd = value_of(row.confirmed_sats, price_usd, "USD")
    balance = as_dict(row) | {"confirmed_usd": confirmed_usd}
    return json_response(call.resources.balance.serialize(balance))


def create_invoice(call: Call) -> Response:
    """Creates an invoice with a new address; converts its dollars at the live price."""
    service = call.service
    caller = call.caller
    body = call.body(accepts.NEW_INVOICE)
    order = orders.order_of(caller.merchant_id, body, shown_currency=caller.currency)

    def prepare() -> quotes.Quote:
        return quotes.quote(service.prices, service.now(), order)

    def make(quote: quotes.Quote) -> dict[str, Any]:
        network = service.settings.network
        row = create.new_invoice(service.db, network, service.now(), quote)
        return service.resources.invoice.dump(row)

    return call.create_once(prepare, make)


def list_invoices(call: Call) -> Response:
    """The newest invoices, all or those of one status."""
    query = call.query(queries.INVOICE_QUERY)
    statement = invoices.LIST
    if "status" in query:
        statement = invoices.LIST_BY_STATUS
    return call.list_rows(call.resources.invoice, statement, **query)


def get_invoice(call: Call, id: str) -> Response:
    """One invoice; clients poll it to learn when it is paid."""
    row = call.get_or_404(invoices.BY_ID, "inv", id)
    return json_response(call.resources.invoice.dump(row))


def create_payment_link(call: Call) -> Response:
    """A reusable checkout page; its invoices are made when somebody pays."""
    service = call.service
    fields = call.body(accepts.NEW_PAYMENT_LINK, empty=b"{}")

    def prepare() -> None:
        """Does nothing: no rate is fetched until the link's page makes an invoice."""

    def make(_: None) -> dict[str, Any]:
        row = new_link(service.db, service.now(), call.merchant_id, fields)
        return call.resources.payment_link.dump(row)

    return call.create_once(prepare, make)


def list_payment_links(call: Call) -> Response:
    """The newest payment links."""
    query = call.query(queries.LIST_QUERY)
    return call.list_rows(call.resources.payment_link, links.LIST, **query)


def get_payment_link(call: Call, id: str) -> Response:
    """One payment link."""
    row = call.get_or_404(links.BY_ID, "lnk", id)
    return json_response(call.resources.payment_link.dump(row))


def list_payments(call: Call) -> Response:
    """The newest confirmed payments, all or those that settled one invoice."""
    query = call.query(queries.PAYMENT_QUERY)
    resource = call.resources.payment
    invoice_id = query.get("invoice_id")
    if invoice_id is None:
        return call.list_rows(resource, payments.LIST, **query)
    if not is_id("inv", invoice_id):
        return json_response(resource.envelope((), []))
    return call.list_rows(resource, payments.LIST_BY_INVOICE, **query)


# fmt: off
OPERATIONS = {
    "get-balance": Operation(
        "GET", "/balance", "read", get_balance, shows.Balance),
    "create-invoice": Operation(
        "POST", "/invoices", "write", create_invoice, shows.Invoice, accepts.NewInvoice,
        body_required=True, priced=True),
    "list-invoices": Operation(
        "GET", "/invoices", "read", list_invoices, shows.Invoice, queries.InvoiceQuery, lists=True),
    "get-invoice": Operation(
        "GET", "/invoices/<id>", "read", get_invoice, shows.Invoice),
    "create-payment-link": Operation(
        "POST", "/payment-links", "write", create_payment_link, shows.PaymentLink,
        accepts.NewPaymentLink),
    "list-payment-links": Operation(
        "GET", "/payment-links", "read", list_payment_links, shows.PaymentLink, queries.Query,
        lists=True),
    "get-payment-link": Operation(
        "GET", "/payment-links/<id>", "read", get_payment_link, shows.PaymentLink),
    "list-payments": Operation(
        "GET", "/payments", "read", list_payments, shows.Payment, queries.PaymentQuery, lists=True),
}
# fmt: on
# The functions that make Flask blueprints: for the API, the checkout pages, the health endpoints,
# and the parts (optional plug-ins in btcpay/parts/). A function returns None if the settings turn
# its blueprint off.
BLUEPRINTS: list[Callable[[Service], Blueprint | None]] = [
    functools.partial(api.blueprint, operations=OPERATIONS),
    checkout.blueprint,
    readyz.blueprint,
    *(part.blueprint for part in hooks.of(hooks.Pages)),
]


def create_app(settings: Settings, now: Callable[[], datetime] = utc_now) -> Flask:
    """Returns the service as a WSGI application.

    The API has paths below /api/v1; pages and other endpoints have other paths. `now`
    returns the wall-clock time. Raises DatabaseNotReady if the database is missing, or
    does not fit this version of the program or the network of the settings.
    """
    service = open_service(settings, now)
    app = Flask("btcpay", static_folder=None, template_folder="web/pages/templates")
    app.extensions["blocktill"] = service
    collectors = [service.counters, _figures_of(service)]
    app.extensions["metrics"] = functools.partial(MetricsServer, collectors)
    # One byte more than the maximum, which btcpay/web/body.py checks itself.
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes + 1
    app.url_map.merge_slashes = False
    # No view is asynchronous. Without this, Flask would check each function at every request.
    app.ensure_sync = lambda func: func  # type: ignore[method-assign]
    app.wsgi_app = _wrap(app, service)  # type: ignore[method-assign]
    app.register_error_handler(Exception, respond_to_error)
    for make_blueprint in BLUEPRINTS:
        blueprint = make_blueprint(service)
        if blueprint:
            app.register_blueprint(blueprint)
    return app


def _figures_of(service: Service) -> Figures:
    """Returns the collector of the metrics that come from the database."""
    database_folder = None
    file = sqlite_path(service.settings.database_url)
    if file:
        database_folder = file.parent
    return Figures(
        service.db, service.limiter.is_complete, service.now, database_folder
    )


def _wrap(app: Flask, service: Service) -> Callable[..., Any]:
    """Returns the WSGI application with the code that runs before and after Flask's."""
    application = access_log.trace_requests(
        normalize_http(app.wsgi_app), service.counters, service.request_logs
    )
    proxy_count = service.settings.trusted_proxies
    if not proxy_count:
        return application
    return ProxyFix(application, x_for=proxy_count, x_proto=0, x_host=0)


def respond_to_error(error: Exception) -> Response:
    """Returns the response to an error outside of all blueprints: JSON, as the API's."""
    return error_response(as_api_error(error))
