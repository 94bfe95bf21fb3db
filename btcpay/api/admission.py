"""How a request under /api/v1 gets in (key, throttle, scope, body) and out (envelope, headers)."""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Any

import orjson
from flask import Flask, Response, g, request
from marshmallow import Schema
from werkzeug.exceptions import HTTPException

from btcpay.api import idempotency, json_body
from btcpay.errors import (
    ApiError,
    Forbidden,
    RateLimited,
    Unauthorized,
)
from btcpay.keys import Caller, caller_of
from btcpay.server.service import Service
from btcpay.web import ignored_fields, rate_limits
from btcpay.web.body import read_json
from btcpay.web.errors import JSON, error_response, from_http, unforeseen
from btcpay.web.rate_limits import Window
from btcpay.web.visitors import counted_as
from schemas import requests as accepts
from schemas.resources import Resources
from storage.database import Row
from storage.queries import keys

ROOT = "/api/v1"
OPENAPI_PATH = f"{ROOT}/openapi.json"


@dataclass(frozen=True)
class Call:
    """One authenticated request to an operation."""

    service: Service
    caller: Caller
    operation: str

    @property
    def merchant_id(self) -> int:
        """The merchant of the key: all data is scoped to it."""
        return self.caller.merchant_id

    @property
    def resources(self) -> Resources:
        """The schemas that show rows to clients."""
        return self.service.resources

    def row(self, query: Any, **values: Any) -> Row | None:
        """The merchant's own row that the query finds."""
        return self.service.db.row(query, merchant_id=self.merchant_id, **values)

    def only(self, query: Any, **values: Any) -> Row:
        """The merchant's own row that must be there."""
        return self.service.db.only(query, merchant_id=self.merchant_id, **values)

    def rows(self, query: Any, **values: Any) -> list[Row]:
        """The merchant's own rows that the query finds."""
        return self.service.db.rows(query, merchant_id=self.merchant_id, **values)

    def query(self, schema: Schema) -> dict[str, Any]:
        """The validated query string."""
        return accepts.load_query(schema, request.args.to_dict(flat=False))

    def body(self, schema: Schema, empty: bytes | None = None) -> dict[str, Any]:
        """The validated JSON body; `empty` is what no body at all stands for, if allowed."""
        g.body = read_json(empty)
        if isinstance(g.body, dict):
            note_ignored(g.body, schema.fields)
        return accepts.load(schema, g.body)

    def once(self, prepare: Callable[[], Any], make: Callable[[Any], dict[str, Any]]) -> Response:
        """201 with what `make` stores and answers, exactly once for an Idempotency-Key.

        `prepare` runs before, outside the transaction; `make` gets what it returned.
        """
        service = self.service
        answer, replayed = idempotency.once(
            service.db,
            self._subject(),
            service.now(),
            prepare,
            lambda prepared: orjson.dumps(make(prepared)).decode(),
        )
        response = Response(f"{answer}\n", 201, mimetype=JSON)
        if replayed:
            response.headers["Idempotent-Replayed"] = "true"
        return response

    def _subject(self) -> idempotency.Subject | None:
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return None
        checked = idempotency.check_key(key)
        digest = json_body.sha256(g.body)
        return idempotency.Subject(self.merchant_id, self.operation, checked, digest)


def answer(value: Any) -> Response:
    """200 with a JSON value; the newline at its end is for terminals."""
    body = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    return Response(body, 200, content_type=JSON)


def _is_api() -> bool:
    return request.path == ROOT or request.path.startswith(f"{ROOT}/")


def _visitor() -> str:
    return counted_as(request.remote_addr)


def admit(service: Service) -> None:
    """Lets a request under /api/v1 in: key, throttle, scope, in this order.

    Leaves the caller and the window that counted in `g`. Raises ApiError.
    """
    if not _is_api():
        return
    if request.path == OPENAPI_PATH:
        g.window = service.limiter.look(rate_limits.FAILED_AUTH, _visitor())
        return
    g.caller = _authenticate(service)
    writes = request.method == "POST"
    g.window = service.limiter.hit(
        rate_limits.WRITES if writes else rate_limits.READS, g.caller.key_id
    )
    if not g.window.allowed:
        raise _rate_limited(service, g.window)
    # A path or method that is no operation has no scope: it is 404 or 405 whatever the key.
    if writes and not g.caller.may_write and request.routing_exception is None:
        raise Forbidden("this API key is read-only; the operation needs a write key")


def _authenticate(service: Service) -> Caller:
    """The caller by bearer key; an invalid one counts against its address, a missing one not."""
    scheme, _, secret = request.headers.get("Authorization", "").strip().partition(" ")
    secret = secret.strip()
    now = service.now()
    caller = caller_of(service.db, secret, now) if scheme.lower() == "bearer" and secret else None
    if caller:
        service.notes.note(keys.USED, caller.key_id, now)
        return caller
    presented = bool(scheme) and (scheme.lower() != "bearer" or bool(secret))
    ask = service.limiter.hit if presented else service.limiter.look
    g.window = ask(rate_limits.FAILED_AUTH, _visitor())
    if presented and not g.window.allowed:
        raise _rate_limited(service, g.window)
    raise Unauthorized(
        "the API key is not valid" if presented else "send the API key as `Authorization: Bearer`"
    )


def _rate_limited(service: Service, window: Window) -> RateLimited:
    wait_s = window.retry_after_s(service.now().timestamp())
    return RateLimited(f"too many requests; retry in {wait_s} s", wait_s)


def add_operation(app: Flask, service: Service, name: str, operation: Any) -> None:
    """Serves an operation of app.py's table: its view gets a Call, then the path's values."""

    reads = operation.accepts().fields if operation.accepts and operation.method == "GET" else ()

    def view(**path_values: str) -> Response:
        if request.query_string:
            note_ignored(request.args, reads)
        return operation.view(Call(service, g.caller, name), **path_values)

    add_path(app, ROOT + operation.path, view, name, operation.method)


def note_ignored(names: Iterable[str], known: Container[str]) -> None:
    """Has the answer, whatever it will be, name those that the operation does not know."""
    g.ignored = [*g.get("ignored", ()), *ignored_fields.unknown(names, known)]


def add_path(
    app: Flask, path: str, view: Callable[..., Any], name: str | None = None, method: str = "GET"
) -> None:
    """Serves one method of one path, and OPTIONS no more than any other method."""
    app.add_url_rule(path, name or path, view, methods=[method], provide_automatic_options=False)


def guard(app: Flask, service: Service) -> None:
    """Puts the way in before every view, and the envelope around every error."""
    app.before_request(lambda: admit(service))
    app.after_request(lambda response: add_headers(service, response))
    app.register_error_handler(ApiError, error_response)
    app.register_error_handler(HTTPException, lambda error: error_response(from_http(error)))
    app.register_error_handler(Exception, lambda error: error_response(unforeseen(error)))


def add_headers(service: Service, response: Response) -> Response:
    """On every answer of the API: its window, what was ignored, and that nobody may keep it."""
    window: Window | None = g.get("window")
    if window is None and _is_api():  # a fault came before any window was known
        window = service.limiter.look(rate_limits.FAILED_AUTH, _visitor())
    if window:
        add = response.headers.add  # no view sets them, so nothing has to be replaced
        add("X-RateLimit-Limit", str(window.limit))
        add("X-RateLimit-Remaining", str(window.remaining))
        add("X-RateLimit-Reset", str(window.reset_s))
        add("Cache-Control", "no-store")
        if names := g.get("ignored"):
            add(ignored_fields.HEADER, ignored_fields.header(names))
    return response
