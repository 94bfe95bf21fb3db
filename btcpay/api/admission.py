"""How a request under /api/v1 gets in (key, throttle, scope, body) and out (envelope, headers)."""

from collections.abc import Sequence
from typing import Any

from flask import Flask, Request, Response, g, request

from btcpay.api.call import Call
from btcpay.api.operation import Operation
from btcpay.merchants.keys import Caller, caller_of
from btcpay.values.errors import Forbidden, Unauthorized
from btcpay.web import ignored_fields, rate_limits
from btcpay.web.application import Answer, add_path
from btcpay.web.errors import as_api_error, error_response
from btcpay.web.rate_limits_memory import Window
from btcpay.web.service import Service
from btcpay.web.visitors import counted_as
from storage.queries import keys

ROOT = "/api/v1"
OPENAPI_PATH = f"{ROOT}/openapi.json"


def _is_api(path: str) -> bool:
    return path.startswith(f"{ROOT}/") or path == ROOT


def _visitor() -> str:
    return counted_as(request.remote_addr)


def _asked_and_noted() -> tuple[Request, Any]:
    """The request, and what is kept beside it: each use of Flask's own names costs a search."""
    return request._get_current_object(), g._get_current_object()  # type: ignore[attr-defined]


def admit(service: Service) -> None:
    """Lets a request under /api/v1 in: key, limits, scope, in this order.

    Puts the caller and the window that counted it into `g`. Raises ApiError. What else stands below
    /api/v1 is a blueprint, which lets in by itself.
    """
    asked, noted = _asked_and_noted()
    if not _is_api(asked.path) or asked.blueprint:
        return
    if asked.path == OPENAPI_PATH:
        noted.window = service.limiter.look(rate_limits.FAILED_AUTH, _visitor())
        return
    noted.caller = caller = authenticate(service, asked)
    writes = asked.method == "POST"
    counted = rate_limits.WRITES if writes else rate_limits.READS
    noted.window = service.limiter.hit(counted, caller.key_id)
    noted.window.require_allowed(service.now())
    # A path or method that is no operation has no scope: it is 404 or 405 with any key.
    if writes and not caller.may_write and asked.routing_exception is None:
        raise Forbidden("this API key is read-only; the operation needs a write key")


def authenticate(service: Service, asked: Request, schemes: Sequence[str] = ("bearer",)) -> Caller:
    """The caller, by bearer key. An invalid key counts against its address; a missing one not."""
    scheme, _, secret = asked.environ.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
    secret = secret.strip()
    now = service.now()
    is_one = scheme.lower() in schemes
    caller = caller_of(service.db, secret, now) if is_one and secret else None
    if caller:
        service.notes.note(keys.USED, caller.key_id, now)
        return caller
    presented = bool(scheme) and (not is_one or bool(secret))
    ask = service.limiter.hit if presented else service.limiter.look
    g.window = ask(rate_limits.FAILED_AUTH, _visitor())
    if presented:
        g.window.require_allowed(now)
    raise Unauthorized(_why_not(is_one, presented))


def _why_not(is_one: bool, presented: bool) -> str:
    if not presented:
        return "send the API key as `Authorization: Bearer KEY`"
    if is_one:
        return "the API key is not valid"
    return "the API key cannot be read: send it as `Authorization: Bearer KEY`"


def add_operation(app: Flask, service: Service, name: str, operation: Operation) -> None:
    """Serves an operation of app.py's table: its view gets a Call, then the path's values."""

    reads = operation.accepts().fields if operation.accepts and operation.method == "GET" else ()

    def view(**path_values: str) -> Response:
        asked, noted = _asked_and_noted()
        if asked.query_string:
            ignored_fields.note(asked.args, reads)
        return operation.view(Call(service, noted.caller, name), **path_values)

    add_path(app, ROOT + operation.path, view, name, operation.method)


def guard(app: Flask, service: Service) -> None:
    """Every request of the interface comes by here."""
    app.before_request(lambda: admit(service))
    app.after_request(lambda response: add_headers(service, response))
    app.register_error_handler(Exception, lambda error: error_response(as_api_error(error)))


def add_headers(service: Service, response: Answer) -> Answer:
    """Names the window and the ignored fields on every answer, which nobody may store."""
    asked, noted = _asked_and_noted()
    window: Window | None = noted.get("window")
    if window is None and _is_api(asked.path):  # there was a fault before any window was known
        window = service.limiter.look(rate_limits.FAILED_AUTH, _visitor())
    if window:
        response.last += (  # no view sets them, so nothing has to be replaced
            ("X-RateLimit-Limit", str(window.limit)),
            ("X-RateLimit-Remaining", str(window.remaining)),
            ("X-RateLimit-Reset", str(window.reset_s)),
            ("Cache-Control", "no-store"),
        )
        if names := noted.get("ignored"):
            response.last += ((ignored_fields.HEADER, ", ".join(names)),)
    return response
