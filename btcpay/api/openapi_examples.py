"""Makes the examples of the OpenAPI document: parameters, bodies, resources and errors.

They tell one story: an invoice over 25 dollars is made, paid and listed. Its values are
the examples of the fields, in `schemas/`.
"""

from typing import Any

from marshmallow import Schema, fields

from btcpay.api.call import Operation
from schemas import queries, requests, resources

Json = dict[str, Any]

IDEMPOTENCY_KEY = "order-10442"
HEADERS = {
    "X-RateLimit-Limit": 120,
    "X-RateLimit-Remaining": 119,
    "X-RateLimit-Reset": 1795241617,
    "Retry-After": 17,
    "X-Ignored-Fields": "expires_in_hour, memo",
}
PARAMETERS = {"limit": 10, "status": "paid", "invoice_id": resources.INVOICE_ID}
MESSAGES = {
    "unauthorized": "the API key is not valid",
    "not_found": "there is no such invoice",
    "conflict": "this Idempotency-Key was used with a different body",
    "payload_too_large": "the body exceeds 65536 bytes",
    "rate_limited": "too many requests; retry in 17 s",
    "server_error": "something went wrong on our side; request id 4f1c2b7a90de",
    "price_unavailable": "the BTC/USD price is unavailable right now; retry shortly",
}
_INVALID: dict[type[Schema] | None, str] = {
    requests.NewInvoice: "amount_usd must be a number",
    requests.NewPaymentLink: "amount_usd is required when amount_mode is fixed",
    queries.Query: "limit must be a whole number from 1 to 100",
    queries.InvoiceQuery: "status must be one of open, paid, expired, canceled",
    queries.PaymentQuery: "limit must be a whole number from 1 to 100",
}
_FORBIDDEN = {
    "read": "this API key is for a shop's plug-in alone: `blocktill key issue`",
    "write": "this API key is read-only; the operation needs a write key",
}
_UNPAID = {"status": "open", "tx_hash": None, "paid_at": None}


def example_of(schema: type[Schema]) -> Json:
    """Returns a JSON object with the first example of each field of the schema."""
    return {name: _first(field) for name, field in schema().fields.items()}


def request_example(operation: Operation) -> Json:
    """Returns the body of a request that the service answers with status 201."""
    assert operation.accepts
    body = example_of(operation.accepts)
    if operation.accepts is requests.NewPaymentLink:
        del body["amount_usd"]  # it does not go with the bounds of a flexible link
    return body


def success_example(operation: Operation) -> Json:
    """Returns the body of the response: a resource, or a list with one resource."""
    resource = example_of(operation.shows)
    if operation.accepts is requests.NewInvoice:
        resource |= _UNPAID
    if operation.lists:
        return {"object": "list", "data": [resource]}
    return resource


def error_message(operation: Operation, code: str) -> str:
    """Returns the service's error message if the operation fails with this error code."""
    if code == "invalid_request":
        return _INVALID[operation.accepts]
    if code == "forbidden":
        return _FORBIDDEN[operation.scope]
    if code == "not_found":
        noun = example_of(operation.shows)["object"].replace("_", " ")
        return f"there is no {noun} with this id"
    return MESSAGES[code]


def error_example(code: str, message: str) -> Json:
    return {"error": {"code": code, "message": message}}


def _first(field: fields.Field[Any]) -> Any:
    if isinstance(field, fields.Constant):
        return field.constant
    return field.metadata["examples"][0]
