"""Who is let in by a plug-in's key, and which view answers which path."""

from collections.abc import Callable
from typing import Any

from flask import Flask, Response, g, redirect, request

from btcpay.api import admission
from btcpay.greenfield import orders, stores, webhooks
from btcpay.greenfield.errors import refusal
from btcpay.merchants.shops import named
from btcpay.values.errors import Forbidden, NotFound
from btcpay.values.ids import is_id
from btcpay.web import rate_limits
from btcpay.web.application import add_path
from btcpay.web.service import Service
from storage.queries import stores as stored

ROOTS = tuple(f"{admission.ROOT}/{name}" for name in ("stores", "server", "api-keys"))
STORE = "/stores/<store>"
INVOICES = f"{STORE}/invoices"
WEBHOOKS, HOOK = f"{STORE}/webhooks", f"{STORE}/webhooks/<hook>"
OF_WEBHOOKS = "webhooks.canmodifywebhooks"
# Method and path, the permission that is needed there, and the view.
OPERATIONS: dict[tuple[str, str], tuple[str, Callable[..., Response]]] = {
    ("GET", "/server/info"): ("", stores.server_info),
    ("GET", "/api-keys/current"): ("", stores.current_key),
    ("GET", "/stores"): ("canviewstoresettings", stores.all_stores),
    ("GET", STORE): ("canviewstoresettings", stores.one_store),
    ("GET", f"{STORE}/payment-methods"): ("canviewstoresettings", stores.payment_methods),
    ("GET", f"{STORE}/rates"): ("canviewstoresettings", stores.rates),
    ("POST", INVOICES): ("cancreateinvoice", orders.create_order),
    ("GET", INVOICES): ("canviewinvoices", orders.list_orders),
    # btcpay-python-sdk has a slash at the end.
    ("POST", f"{INVOICES}/"): ("cancreateinvoice", orders.create_order),
    ("GET", f"{INVOICES}/"): ("canviewinvoices", orders.list_orders),
    ("GET", f"{INVOICES}/<id>"): ("canviewinvoices", orders.get_order),
    ("PUT", f"{INVOICES}/<id>"): ("canmodifyinvoices", orders.set_metadata),
    ("DELETE", f"{INVOICES}/<id>"): ("canmodifyinvoices", orders.archive_order),
    ("POST", f"{INVOICES}/<id>/status"): ("canmodifyinvoices", orders.mark_order),
    ("GET", f"{INVOICES}/<id>/payment-methods"): ("canviewinvoices", orders.order_methods),
    ("GET", WEBHOOKS): (OF_WEBHOOKS, webhooks.list_webhooks),
    ("POST", WEBHOOKS): (OF_WEBHOOKS, webhooks.add_webhook),
    ("GET", HOOK): (OF_WEBHOOKS, webhooks.get_webhook),
    ("PUT", HOOK): (OF_WEBHOOKS, webhooks.change_webhook),
    ("DELETE", HOOK): (OF_WEBHOOKS, webhooks.remove_webhook),
}


class Greenfield:
    """The dialect of `api/admission.py` that plug-ins speak."""

    def speaks(self, path: str) -> bool:
        return any(path == root or path.startswith(f"{root}/") for root in ROOTS)

    def admit(self, service: Service) -> None:
        """By a key that belongs to a store, within windows of its own. Raises ApiError."""
        g.caller = caller = admission.authenticate(service, request, ("bearer", "token"))
        reads = request.method in ("GET", "HEAD")
        counted = rate_limits.SHOP_READS if reads else rate_limits.SHOP_WRITES
        g.window = service.limiter.hit(counted, caller.key_id)
        g.window.require_allowed(service.now())
        if caller.store_id is None:
            raise Forbidden("this API key belongs to no shop: `btcpay key issue --for`")

    def refuse(self, error: Exception) -> Response:
        return refusal(error)


def add(app: Flask, service: Service) -> Greenfield:
    """Serves all of it; who guards the app asks what is returned."""
    for (method, path), (permission, view) in OPERATIONS.items():
        name = f"greenfield {method} {path}"
        add_path(app, admission.ROOT + path, _admitted(service, permission, view), name, method)
    add_path(app, "/i/<id>", lambda id: redirect(f"/pay/{id}", 302), "greenfield page")
    return Greenfield()


def _admitted(
    service: Service, permission: str, view: Callable[..., Response]
) -> Callable[..., Response]:
    def answered(store: str | None = None, id: str | None = None, **rest: Any) -> Response:
        if store is not None and store != g.caller.store_id:
            raise NotFound("there is no store with this id")
        if permission and permission not in g.caller.permissions.split():
            raise Forbidden(f"this needs a key with the permission {named(permission)}")
        if id is not None and not is_id("inv", id):
            raise NotFound("there is no invoice with this id")
        own = service.db.only(stored.BY_ID, id=g.caller.store_id)
        return view(service, own, **rest if id is None else {"id": id})

    return answered
