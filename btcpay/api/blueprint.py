"""Makes the Flask blueprint of the API under /api/v1, with the OpenAPI document."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from flask import Blueprint, Response, g, request

from btcpay.api import openapi
from btcpay.api.call import ROOT, Call, Operation, key_of
from btcpay.api.ignored_names import note_ignored
from btcpay.values.errors import Forbidden
from btcpay.web.admission import add_window_headers, caller_windows, guard
from btcpay.web.errors import as_api_error, error_response
from btcpay.web.paths import add_path, refuse_others
from btcpay.web.rate_limits import READS, WRITES
from btcpay.web.service import Service
from storage.queries.keys import Caller


def blueprint(service: Service, operations: Mapping[str, Operation]) -> Blueprint:
    """Returns the blueprint of the API.

    The blueprint checks the API key first on every path, also on unknown paths. Only
    the OpenAPI document needs no key.
    """
    api = Blueprint("api", __name__, url_prefix=ROOT)
    api.after_request(lambda response: add_window_headers(service, response))
    api.register_error_handler(
        Exception, lambda error: error_response(as_api_error(error))
    )

    @functools.cache  # the document stays the same while the process runs
    def show_document() -> dict[str, Any]:
        return openapi.document(service.settings.base_url, operations)

    add_path(api, "/openapi.json", show_document, "openapi")
    refuse_others(api, "/openapi.json")
    api.register_blueprint(_with_key(service, operations))
    return api


def _with_key(service: Service, operations: Mapping[str, Operation]) -> Blueprint:
    """Returns the blueprint of the operations and of unknown paths, which need a key."""
    blueprint = Blueprint("operations", __name__)
    blueprint.before_request(
        guard(service, caller_windows(READS, WRITES), lambda: key_of(service))
    )
    for name, operation in operations.items():
        view = _view(service, name, operation)
        add_path(blueprint, operation.path, view, name, operation.method)
    # A dict, since two operations may have the same path.
    paths = dict.fromkeys(operation.path for operation in operations.values())
    # Also the root of the API, and all paths below it.
    refuse_others(blueprint, *paths, "", "/<rest:rest>")
    return blueprint


def _view(service: Service, name: str, operation: Operation) -> Callable[..., Response]:
    """Returns the Flask view of an operation.

    The Flask view checks that the API key may be used for the operation. Then it calls
    the operation's own view with a Call and the values from the path.
    """
    query_fields: Mapping[str, Any] = {}
    if operation.accepts and operation.method == "GET":
        query_fields = operation.accepts().fields

    def view(**path_values: str) -> Response:
        caller = g.caller
        _require_permission(caller, operation)
        if request.query_string:
            note_ignored(request.args, query_fields)
        return operation.view(Call(service, caller, name), **path_values)

    return view


def _require_permission(caller: Caller, operation: Operation) -> None:
    """Raises Forbidden if the API key may not be used for the operation."""
    if caller.store_id is not None:  # a key for the plug-in of a shop system
        raise Forbidden(
            "this API key is for a shop's plug-in alone: `blocktill key issue`"
        )
    if operation.scope == "write" and caller.scope != "write":
        raise Forbidden("this API key is read-only; the operation needs a write key")
