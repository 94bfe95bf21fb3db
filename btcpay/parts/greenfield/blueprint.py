"""The interface of plug-ins: its paths and their views, its admission, the form of errors."""

from collections.abc import Callable, Iterator
from typing import Any

from flask import Blueprint, Response, g
from marshmallow import ValidationError

from btcpay import hooks
from btcpay.api.call import ROOT, key_of
from btcpay.parts.greenfield import orders, queries, stores
from btcpay.parts.greenfield.frame import shop_pages
from btcpay.parts.greenfield.keys import OF_STORE
from btcpay.values.errors import Forbidden, MethodNotAllowed, NotFound
from btcpay.values.ids import is_id
from btcpay.web.admission import add_window_headers, caller_windows, guard
from btcpay.web.errors import as_api_error, error_response
from btcpay.web.paths import add_path, json_response, refuse_others
from btcpay.web.rate_limits import SHOP_READS, SHOP_WRITES
from btcpay.web.service import Service
from storage.statement import Typed

View = Callable[..., Any]
STORE = "/stores/<store>"
INVOICES = f"{STORE}/invoices"
WEBHOOKS = f"{STORE}/webhooks"
WEBHOOK = f"{WEBHOOKS}/<whk>"
OF_WEBHOOKS = "webhooks.canmodifywebhooks"
# Method and path, the permission that is needed there, and the view.
OPERATIONS: dict[tuple[str, str], tuple[str, View]] = {
    ("GET", "/server/info"): ("", stores.server_info),
    ("GET", "/api-keys/current"): ("", stores.current_key),
    ("GET", "/stores"): ("canviewstoresettings", lambda *of: [stores.one_store(*of)]),
    ("GET", STORE): ("canviewstoresettings", stores.one_store),
    ("GET", f"{STORE}/payment-methods"): (
        "canviewstoresettings",
        lambda *_: stores.METHODS,
    ),
    ("GET", f"{STORE}/rates"): ("canviewstoresettings", stores.rates),
    ("POST", INVOICES): ("cancreateinvoice", orders.create_order),
    ("GET", INVOICES): ("canviewinvoices", orders.list_orders),
    # btcpay-python-sdk has a slash at the end.
    ("POST", f"{INVOICES}/"): ("cancreateinvoice", orders.create_order),
    ("GET", f"{INVOICES}/"): ("canviewinvoices", orders.list_orders),
    ("GET", f"{INVOICES}/<inv>"): ("canviewinvoices", orders.get_order),
    ("PUT", f"{INVOICES}/<inv>"): ("canmodifyinvoices", orders.set_metadata),
    ("DELETE", f"{INVOICES}/<inv>"): ("canmodifyinvoices", orders.archive_order),
    ("POST", f"{INVOICES}/<inv>/status"): ("canmodifyinvoices", orders.mark_order),
    ("GET", f"{INVOICES}/<inv>/payment-methods"): (
        "canviewinvoices",
        orders.order_methods,
    ),
    ("GET", WEBHOOKS): (OF_WEBHOOKS, stores.list_webhooks),
    ("POST", WEBHOOKS): (OF_WEBHOOKS, stores.add_webhook),
    ("GET", WEBHOOK): (OF_WEBHOOKS, stores.get_webhook),
    ("PUT", WEBHOOK): (OF_WEBHOOKS, stores.change_webhook),
    ("DELETE", WEBHOOK): (OF_WEBHOOKS, stores.remove_webhook),
}
# The rows that a path names below a store, by the prefix of their ids.
NAMED: dict[str, Typed[Any]] = {"inv": queries.ORDER, "whk": queries.WEBHOOK}
for _part in hooks.of(hooks.PlugInOperations):
    OPERATIONS |= _part.operations
    NAMED |= _part.rows


def blueprint(service: Service) -> Blueprint | None:
    """The interface and its pages, unless the settings have it off."""
    if not service.settings.greenfield:
        return None
    whole = Blueprint("greenfield", __name__, template_folder="templates")
    whole.register_blueprint(plug_ins(service))
    whole.register_blueprint(shop_pages(service))
    return whole


def plug_ins(service: Service) -> Blueprint:
    """The operations; anything else below their roots is refused in a form that plug-ins read."""
    made = Blueprint("interface", __name__, url_prefix=ROOT)
    windows = caller_windows(SHOP_READS, SHOP_WRITES, ("POST", "PUT", "DELETE"))
    made.before_request(
        guard(service, windows, lambda: key_of(service, ("bearer", "token")))
    )
    made.before_request(_refuse_other_keys)
    made.after_request(lambda response: add_window_headers(service, response))
    made.register_error_handler(Exception, refusal)
    for (method, path), (permission, view) in OPERATIONS.items():
        add_path(
            made, path, _admitted(service, permission, view), f"{method} {path}", method
        )
    for root in ("/stores", "/server", "/api-keys", "/pull-payments"):
        refuse_others(made, root, f"{root}/<rest:rest>")
    return made


def _refuse_other_keys() -> None:
    if g.caller.store_id is None:
        raise Forbidden("this API key belongs to no shop: `blocktill key issue --for`")


def _admitted(service: Service, permission: str, view: View) -> View:
    """A view that gets the rows named in the path, only of the key's own store."""

    def answered(store: str | None = None, **ids: str) -> Response:
        if store is not None and store != g.caller.store_id:
            raise NotFound("there is no store with this id")
        if permission and permission not in g.caller.permissions.split():
            raise Forbidden(
                f"this needs a key with the permission {OF_STORE}{permission}"
            )
        rows: list[Any] = [service.db.only(queries.BY_ID, id=g.caller.store_id)]
        for prefix, id in ids.items():
            key = {"store_id": g.caller.store_id, "id": id}
            row = service.db.row(NAMED[prefix], **key) if is_id(prefix, id) else None
            if row is None:
                raise NotFound("there is nothing with this id")
            rows.append(row)
        return json_response(view(service, *rows))

    return answered


def refusal(error: Exception) -> Response:
    """Errors as plug-ins read them: one object in both shapes, or a list of fields."""
    if isinstance(error, ValidationError):
        return json_response(list(_mistakes(error.normalized_messages())), 422)
    found = as_api_error(error)
    if isinstance(found, MethodNotAllowed):  # plug-ins know 404 alone
        found = NotFound("there is nothing at this path")
    said = {"code": found.code, "message": str(found)}
    response = error_response(found)
    response.data = json_response(said | {"error": said}).data
    return response


def _mistakes(found: Any, *path: str) -> Iterator[dict[str, str]]:
    if isinstance(found, dict):
        for name, below in found.items():
            yield from _mistakes(
                below, *path, *([] if name == "_schema" else [str(name)])
            )
    else:
        for message in found:
            yield {"path": ".".join(path), "message": str(message)}


HOOK = hooks.Pages(blueprint=blueprint)
