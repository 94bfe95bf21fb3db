"""Makes the headers and the error responses of the OpenAPI document."""

from typing import Any

from btcpay.api import openapi_examples as examples
from btcpay.api.ignored_names import IGNORED_HEADER
from btcpay.api.openapi_events import component, text, whole
from btcpay.web.errors import STATUS

Json = dict[str, Any]

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
_RATE_LIMIT = {
    "X-RateLimit-Limit": "maximum requests allowed in the current window",
    "X-RateLimit-Remaining": "requests left in the current window",
    "X-RateLimit-Reset": "unix time in seconds when the window resets",
}
_RETRY_AFTER = {"Retry-After": "seconds to wait"}
_IGNORED_MEANS = (
    "names in the body or the query that the operation does not know, separated by comma and space;"
    " absent if there are none; at most 20, of printable ASCII without a comma"
)
# Errors that are raised before body and query are read.
_UNREAD = ("unauthorized", "forbidden", "rate_limited")


def error_schemas() -> dict[str, Json]:
    """Returns the two schemas of an error response (`Error` and its `Fault`) by name."""
    code = text("For programs: it never changes.", enum=list(STATUS))
    message = text(
        "For people; it names the field or parameter.",
        examples=["amount_usd must be a number"],
    )
    fault = component("Fault", "What went wrong.")
    return {
        "Fault": whole({"code": code, "message": message}),
        "Error": whole({"error": fault}),
    }


def header_components() -> dict[str, Json]:
    """Returns the description of each response header by name."""
    headers = {}
    for name, meaning in (_RATE_LIMIT | _RETRY_AFTER).items():
        headers[name] = _header(name, meaning, "integer", required=True)
    headers[IGNORED_HEADER] = _header(
        IGNORED_HEADER, _IGNORED_MEANS, "string", required=False
    )
    return headers


def _header(name: str, meaning: str, type: str, required: bool) -> Json:
    return {
        "description": meaning,
        "required": required,
        "schema": {"type": type},
        "example": examples.HEADERS[name],
    }


def json_content(schema: Any, example: Any) -> Json:
    """Returns the `content` of a request or response in JSON."""
    return {"application/json": {"schema": schema, "example": example}}


def success(summary: str, content: Json) -> Json:
    """Returns the description of an operation's successful response."""
    return {
        "description": summary,
        "headers": _references(*_RATE_LIMIT, IGNORED_HEADER),
        "content": content,
    }


def failure(code: str, message: str) -> Json:
    """Returns the description of an operation's error response.

    `code` is the error's code, a key of STATUS. `message` is an example of its message.
    """
    headers = [*_RATE_LIMIT]
    if code == "rate_limited":
        headers += _RETRY_AFTER
    if code not in _UNREAD:
        headers.append(IGNORED_HEADER)
    return {
        "description": f"`{code}`: {_MEANING[code]}",
        "headers": _references(*headers),
        "content": json_content("Error", examples.error_example(code, message)),
    }


def page_failures() -> dict[str, Json]:
    """Returns the error responses of an invoice's public page, by error code.

    A page sends no X-RateLimit headers.
    """
    not_found = _page_failure("not_found")
    not_found["description"] = "`not_found`: no invoice has that id"
    rate_limited = _page_failure("rate_limited")
    rate_limited["headers"] = _references(*_RETRY_AFTER)
    return {
        "not_found": not_found,
        "rate_limited": rate_limited,
        "server_error": _page_failure("server_error"),
    }


def _page_failure(code: str) -> Json:
    return failure(code, examples.MESSAGES[code]) | {"headers": {}}


def _references(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
