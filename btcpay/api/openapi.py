"""Makes the OpenAPI 3.1 document of the API from the operations and their schemas."""

from collections.abc import Iterable, Mapping
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin

from btcpay.api.call import IGNORED_HEADER, ROOT, Operation
from btcpay.api.openapi_events import component, event_schemas, text, webhooks, whole
from btcpay.web.errors import STATUS
from schemas.fields import Number, Timestamp
from schemas.queries import Limit
from schemas.requests import Body
from schemas.resources import CheckoutStatus

VERSION = "1.0.0"

_MEANING = {
    "invalid_request": "a field or parameter is missing, of the wrong type or out of range",
    "unauthorized": "the API key is missing or invalid",
    "forbidden": "the key is a shop's, or read-only where the operation needs write scope",
    "not_found": "no resource with that id belongs to the merchant",
    "conflict": "the Idempotency-Key is still in use, or was used with a different body",
    "payload_too_large": "the request body exceeds the maximum size",
    "rate_limited": "too many requests in the last 60 seconds",
    "server_error": "a fault on the server; the message names a request id",
    "price_unavailable": "no live BTC price; retry shortly",
}
_HEADERS = {
    "X-RateLimit-Limit": "maximum requests allowed in the current window",
    "X-RateLimit-Remaining": "requests left in the current window",
    "X-RateLimit-Reset": "unix time in seconds when the window resets",
    "Retry-After": "seconds to wait",
}
_IGNORED_MEANS = (
    "names in the body or the query that the operation does not know, separated by comma and space;"
    " absent if there are none; at most 20, of printable ASCII without a comma"
)
_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The id from the answer that created it.",
    "schema": {"type": "string"},
}
_TAGS = {
    "balance": "The merchant's balance.",
    "invoices": "One-time payment requests.",
    "payment-links": "Pages that make an invoice for each payer.",
    "payments": "Payments confirmed on the chain.",
    "events": "Events sent to webhooks.",
}
# Errors that are raised before body and query are read.
_UNREAD = ("unauthorized", "forbidden", "rate_limited")

_CODE = text("For programs: it never changes.", enum=list(STATUS))
_MESSAGE = text(
    "For people; it names the field or parameter.",
    examples=["amount_usd must be a number"],
)
_FAULT = whole({"code": _CODE, "message": _MESSAGE})
STATUS_PATH = "/pay/{id}/status"


def document(base_url: str, operations: Mapping[str, Operation]) -> dict[str, Any]:
    """Returns the OpenAPI document as a JSON object.

    `base_url` is the service's public URL. `operations` is the table OPERATIONS in
    app.py.
    """
    plugin = MarshmallowPlugin()
    spec = APISpec(
        title="Bitcoin Payments Service",
        version=VERSION,
        openapi_version="3.1.0",
        plugins=[plugin],
        info={
            "description": "On-chain Bitcoin payments: invoices, payment links, payments, balance.",
            "contact": {"name": "Whoever runs this service", "url": base_url},
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        servers=[{"url": base_url}],
        security=[{"apiKey": []}],
        tags=[{"name": name, "description": means} for name, means in _TAGS.items()],
    )
    plugin.map_to_openapi_type(Number, "number", None)
    plugin.map_to_openapi_type(Limit, "integer", None)
    plugin.map_to_openapi_type(Timestamp, "string", "date-time")
    spec.components.security_scheme("apiKey", {"type": "http", "scheme": "bearer"})
    own_schemas = {
        "Fault": _FAULT,
        "Error": whole({"error": component("Fault", "What went wrong.")}),
    }
    for name, schema in (own_schemas | event_schemas()).items():
        spec.components.schema(name, schema)
    for name, meaning in _HEADERS.items():
        spec.components.header(name, _header(meaning, "integer", required=True))
    ignored_header = _header(_IGNORED_MEANS, "string", required=False)
    spec.components.header(IGNORED_HEADER, ignored_header)
    _add_resources(spec, operations.values())
    for name, operation in operations.items():
        spec.path(
            ROOT + operation.path.replace("<", "{").replace(">", "}"),
            operations={operation.method.lower(): _operation(name, operation)},
        )
    spec.path(STATUS_PATH, operations={"get": _status()})
    document = spec.to_dict()
    for operation in operations.values():
        body = operation.accepts
        if body and issubclass(body, Body):
            document["components"]["schemas"][body.__name__] |= body.together
    return document | {"webhooks": webhooks()}


def _header(meaning: str, type: str, required: bool) -> dict[str, Any]:
    return {"description": meaning, "required": required, "schema": {"type": type}}


def _add_resources(spec: APISpec, operations: Iterable[Operation]) -> None:
    """Adds the schema of each resource, and of each list of resources."""
    for resource in {operation.shows: None for operation in operations}:
        spec.components.schema(resource.__name__, schema=resource)
    for operation in operations:
        if operation.lists:
            name = operation.shows.__name__
            spec.components.schema(f"{name}List", _list_of(name))


def _operation(name: str, operation: Operation) -> dict[str, Any]:
    responses = {"200": _success(operation)}
    if operation.method == "POST":
        responses = {"201": _success(operation)}
    for code in _errors(operation):
        responses[str(STATUS[code])] = _failure(code)
    description = {
        "operationId": name,
        "tags": [operation.path.split("/")[1]],
        "summary": (operation.view.__doc__ or "").splitlines()[0],
        "description": f"Needs a key of scope `{operation.scope}`.",
        "parameters": _parameters(operation),
        "responses": responses,
    }
    if operation.method == "POST":
        description["requestBody"] = {
            "required": operation.body_required,
            "content": _json(operation.accepts),
        }
    return description


def _status() -> dict[str, Any]:
    """Returns the description of the request for an invoice's status (STATUS_PATH).

    The invoice's page sends this request every few seconds, and a shop may send it too.
    It needs no API key.
    """
    summary = "What an invoice waits for."
    failures = {
        code: _failure(code) for code in ("not_found", "rate_limited", "server_error")
    }
    for failure in failures.values():
        failure["headers"] = {}  # only the API sends rate-limit headers
    failures["not_found"]["description"] = "`not_found`: no invoice has that id"
    failures["rate_limited"]["headers"] = _headers("Retry-After")
    return {
        "operationId": "get-checkout-status",
        "summary": summary,
        "description": "Public: needs no key, only the invoice's id. Limited by address, with the"
        " pages: 120 requests a minute for one invoice, 600 for all.",
        "tags": ["invoices"],
        "security": [],
        "parameters": [_ID],
        "responses": {"200": {"description": summary, "content": _json(CheckoutStatus)}}
        | {str(STATUS[code]): failure for code, failure in failures.items()},
    }


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    if operation.method == "POST":
        schema = {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "pattern": "^[ -~]*$",
        }
        why = "Makes retries safe: a retry never creates a duplicate resource."
        return [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": why,
                "schema": schema,
            }
        ]
    if "<id>" in operation.path:
        return [_ID]
    if operation.accepts:
        return [{"in": "query", "schema": operation.accepts}]
    return []


def _errors(operation: Operation) -> list[str]:
    writes = operation.method == "POST"
    applies = {
        "invalid_request": operation.accepts,
        "conflict": writes,
        "payload_too_large": writes,
        "price_unavailable": operation.priced,
        "not_found": "<id>" in operation.path,
    }
    return [code for code in STATUS if applies.get(code, True)]


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _list_of(name: str) -> dict[str, Any]:
    items = {
        "type": "array",
        "maxItems": 100,
        "items": component(name),
        "description": "Newest first.",
    }
    return whole({"object": text("Always `list`.", const="list"), "data": items})


def _success(operation: Operation) -> dict[str, Any]:
    schema: Any = operation.shows
    if operation.lists:
        schema = f"{operation.shows.__name__}List"
    return {
        "description": (operation.view.__doc__ or "").splitlines()[0],
        "headers": _headers(*list(_HEADERS)[:3], IGNORED_HEADER),
        "content": _json(schema),
    }


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _failure(code: str) -> dict[str, Any]:
    names = list(_HEADERS)[:3]
    if code == "rate_limited":
        names = list(_HEADERS)
    if code not in _UNREAD:
        names.append(IGNORED_HEADER)
    return {
        "description": f"`{code}`: {_MEANING[code]}",
        "headers": _headers(*names),
        "content": _json("Error"),
    }
