"""The Greenfield API: its paths, the required permissions, and the form of errors."""

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
# By method and path: the required permission, and the view.
OPERATIONS: dict[tuple[str, str], tuple[str, View]] = {
    ("GET", "/server/info"): ("", stores.server_info),
    ("GET", "/api-keys/current"): ("", stores.current_key),
    ("GET", "/stores"): ("canviewstoresettings", stores.list_stores),
    ("GET", STORE): ("canviewstoresettings", stores.get_store),
    ("GET", f"{STORE}/payment-methods"): (
        "canviewstoresettings",
        stores.store_methods,
    ),
    ("GET", f"{STORE}/rates"): ("canviewstoresettings", stores.rates),
    ("POST", INVOICES): ("cancreateinvoice", orders.create_order),
    ("GET", INVOICES): ("canviewinvoices", orders.list_orders),
    # btcpay-python-sdk sends a slash at the end.
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
# By the prefix of an id in a path: the query for the row with that id.
ROW_BY_PREFIX: dict[str, Typed[Any]] = {"inv": queries.ORDER, "whk": queries.WEBHOOK}
for _part in hooks.of(hooks.PlugInOperations):
    OPERATIONS |= _part.operations
    ROW_BY_PREFIX |= _part.rows


def blueprint(service: Service) -> Blueprint | None:
    """Returns the blueprint of the API and of the pages for shops.

    Returns None if the settings disable this part.
    """
    if not service.settings.greenfield:
        return None
    part = Blueprint("greenfield", __name__, template_folder="templates")
    part.register_blueprint(operations(service))
    part.register_blueprint(shop_pages(service))
    return part


def operations(service: Service) -> Blueprint:
    """Returns the blueprint of the API's operations.

    A request to any other path of the API gets an error in the form that plug-ins
    expect.
    """
    blueprint = Blueprint("interface", __name__, url_prefix=ROOT)
    windows = caller_windows(SHOP_READS, SHOP_WRITES, ("POST", "PUT", "DELETE"))
    blueprint.before_request(
        guard(service, windows, lambda: key_of(service, ("bearer", "token")))
    )
    blueprint.before_request(_refuse_other_keys)
    blueprint.after_request(lambda response: add_window_headers(service, response))
    blueprint.register_error_handler(Exception, error_answer)
    for (method, path), (permission, view) in OPERATIONS.items():
        checked_view = _check_permission(service, permission, view)
        add_path(blueprint, path, checked_view, f"{method} {path}", method)
    for root in ("/stores", "/server", "/api-keys", "/pull-payments"):
        refuse_others(blueprint, root, f"{root}/<rest:rest>")
    return blueprint


def _refuse_other_keys() -> None:
    if g.caller.store_id is None:
        raise Forbidden("this API key belongs to no shop: `blocktill key issue --for`")


def _check_permission(service: Service, permission: str, view: View) -> View:
    """Returns a view that requires `permission` and then calls `view`.

    `view` gets the service, the store of the API key, and the rows whose ids are in the
    path. The returned view raises NotFound if a row does not belong to that store, and
    Forbidden if the key lacks the permission. An empty `permission` requires none.
    """

    # Flask passes the parts of the path: the store's id, and other ids by their prefix.
    def respond(store: str | None = None, **ids: str) -> Response:
        own_store_id = g.caller.store_id
        if store is not None and store != own_store_id:
            raise NotFound("there is no store with this id")
        if permission and permission not in g.caller.permissions.split():
            raise Forbidden(
                f"this needs a key with the permission {OF_STORE}{permission}"
            )
        own_store = service.db.get(queries.BY_ID, id=own_store_id)
        rows = [_get_or_404(service, prefix, id) for prefix, id in ids.items()]
        return json_response(view(service, own_store, *rows))

    return respond


def _get_or_404(service: Service, prefix: str, id: str) -> Any:
    """Returns the caller's row with this id. Raises NotFound if the store has no such row."""
    row = None
    if is_id(prefix, id):
        query = ROW_BY_PREFIX[prefix]
        row = service.db.get_or_none(query, store_id=g.caller.store_id, id=id)
    if row is None:
        raise NotFound("there is nothing with this id")
    return row


def error_answer(error: Exception) -> Response:
    """Returns the response to an error, in the form that plug-ins expect.

    For a ValidationError, the body is a list of objects, each with `message` and the
    `path` of the invalid field. For any other error, the body is one object with the
    fields `code`, `message` and `error`. `error` is an object with `code` and `message`
    again.
    """
    if isinstance(error, ValidationError):
        return json_response(list(_mistakes(error.normalized_messages())), 422)
    api_error = as_api_error(error)
    # Plug-ins do not expect the status 405.
    if isinstance(api_error, MethodNotAllowed):
        api_error = NotFound("there is nothing at this path")
    message = {"code": api_error.code, "message": str(api_error)}
    response = error_response(api_error)
    response.data = json_response(message | {"error": message}).data
    return response


def _mistakes(messages: Any, *path: str) -> Iterator[dict[str, str]]:
    """Yields each message with the path of its field.

    `messages` is a list of messages about the field at `path`, or a dict of such lists
    and dicts by the names of the fields below it. If a message is about a whole object
    (`_schema` in marshmallow), its path is that of the object.
    """
    if not isinstance(messages, dict):
        for message in messages:
            yield {"path": ".".join(path), "message": str(message)}
        return
    for name, messages_of_field in messages.items():
        path_of_field = path
        if name != "_schema":
            path_of_field = (*path, str(name))
        yield from _mistakes(messages_of_field, *path_of_field)


HOOK = hooks.Pages(blueprint=blueprint)
