"""Makes the Flask blueprint of the API under /api/v1, with the OpenAPI document."""

import functools
from collections.abc import Callable, Container, Mapping
from typing import Any

from flask import Blueprint, Response, g, request

from btcpay.api import openapi
from btcpay.api.call import ROOT, Call, Operation, key_of, note_ignored
from btcpay.values.errors import Forbidden
from btcpay.web.admission import add_window_headers, caller_windows, guard
from btcpay.web.errors import as_api_error, error_response
from btcpay.web.paths import add_path, refuse_others
from btcpay.web.rate_limits import READS, WRITES
from btcpay.web.service import Service


def blueprint(service: Service, operations: Mapping[str, Operation]) -> Blueprint:
    """Returns the blueprint of the API.

    The blueprint checks the API key first on every path, also on unknown paths. Only
    the OpenAPI document needs no key.
    """
    interface = Blueprint("api", __name__, url_prefix=ROOT)
    interface.after_request(lambda response: add_window_headers(service, response))
    interface.register_error_handler(
        Exception, lambda error: error_response(as_api_error(error))
    )

    @functools.cache
    def show_document() -> dict[str, Any]:
        return openapi.document(service.settings.base_url, operations)

    add_path(interface, "/openapi.json", show_document, "openapi")
    refuse_others(interface, "/openapi.json")
    interface.register_blueprint(_with_key(service, operations))
    return interface


def _with_key(service: Service, operations: Mapping[str, Operation]) -> Blueprint:
    """Returns the blueprint of the operations and of unknown paths, which need a key."""
    blueprint = Blueprint("operations", __name__)
    blueprint.before_request(
        guard(service, caller_windows(READS, WRITES), lambda: key_of(service))
    )
    for name, operation in operations.items():
        view = _view(service, name, operation)
        add_path(blueprint, operation.path, view, name, operation.method)
    paths = dict.fromkeys(operation.path for operation in operations.values())
    refuse_others(blueprint, *paths, "", "/<rest:rest>")
    return blueprint


def _view(service: Service, name: str, operation: Operation) -> Callable[..., Response]:
    """Returns the Flask view of an operation.

    It checks that the scope of the API key permits the operation. Then it calls the
    operation's own view with a Call and the values from the path.
    """
    parameters: Container[str] = ()
    if operation.accepts and operation.method == "GET":
        parameters = operation.accepts().fields

    def view(**path_values: str) -> Response:
        caller = g.caller
        if caller.store_id is not None:  # the key is only for one shop's plug-in
            raise Forbidden(
                "this API key is for a shop's plug-in alone: `blocktill key issue`"
            )
        if operation.scope == "write" and caller.scope != "write":
            raise Forbidden(
                "this API key is read-only; the operation needs a write key"
            )
        if request.query_string:
            note_ignored(request.args, parameters)
        return operation.view(Call(service, caller, name), **path_values)

    return view
