"""Makes the OpenAPI 3.1 document of the API from the operations and their schemas."""

from collections.abc import Iterable, Mapping
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin

from btcpay.api import openapi_examples as examples
from btcpay.api import openapi_responses as responses
from btcpay.api.call import ROOT, Operation
from btcpay.api.openapi_events import component, event_schemas, text, webhooks, whole
from btcpay.api.openapi_parameters import (
    add_parameter_examples,
    id_parameter,
    parameters_of,
)
from btcpay.api.openapi_responses import json_content
from btcpay.web.errors import STATUS
from schemas.fields import Number, Timestamp
from schemas.queries import Limit
from schemas.requests import Body
from schemas.resources import CheckoutStatus, Invoice

VERSION = "1.0.0"

_TAGS = {
    "balance": "The merchant's balance.",
    "invoices": "One-time payment requests.",
    "payment-links": "Pages that make an invoice for each payer.",
    "payments": "Payments confirmed on the chain.",
    "events": "Events sent to webhooks.",
}
_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key, of `blocktill key issue`.",
}
STATUS_PATH = "/pay/{id}/status"


def document(base_url: str, operations: Mapping[str, Operation]) -> dict[str, Any]:
    """Returns the OpenAPI document as a JSON object.

    `base_url` is the service's public URL. `operations` is the table OPERATIONS in
    app.py.
    """
    spec = _new_spec(base_url)
    _add_components(spec)
    _add_resources(spec, operations.values())
    for name, operation in operations.items():
        spec.path(
            ROOT + operation.path.replace("<", "{").replace(">", "}"),
            operations={operation.method.lower(): _operation(name, operation)},
        )
    spec.path(STATUS_PATH, operations={"get": _status()})
    members = spec.to_dict()
    _add_rules_of_bodies(members["components"]["schemas"], operations.values())
    for methods in members["paths"].values():
        for description in methods.values():
            add_parameter_examples(description["parameters"])
    return members | {"webhooks": webhooks()}


def _new_spec(base_url: str) -> APISpec:
    """Returns apispec's builder of a document, with the types of our own fields."""
    plugin = MarshmallowPlugin()
    tags = [{"name": name, "description": text} for name, text in _TAGS.items()]
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
        tags=tags,
    )
    plugin.map_to_openapi_type(Number, "number", None)
    plugin.map_to_openapi_type(Limit, "integer", None)
    plugin.map_to_openapi_type(Timestamp, "string", "date-time")
    return spec


def _add_components(spec: APISpec) -> None:
    """Adds the API key, the schemas of errors and events, and the response headers."""
    spec.components.security_scheme("apiKey", _KEY)
    for name, schema in (responses.error_schemas() | event_schemas()).items():
        spec.components.schema(name, schema)
    for name, header in responses.header_components().items():
        spec.components.header(name, header)


def _add_resources(spec: APISpec, operations: Iterable[Operation]) -> None:
    """Adds the schema of each resource, and of each list of resources."""
    # A dict, since several operations return the same resource.
    resources = dict.fromkeys(operation.shows for operation in operations)
    for resource in resources:
        spec.components.schema(resource.__name__, schema=resource)
    for operation in operations:
        if operation.lists:
            name = operation.shows.__name__
            spec.components.schema(f"{name}List", _list_of(name))


def _add_rules_of_bodies(
    schemas: dict[str, Any],
    operations: Iterable[Operation],
) -> None:
    """Adds to each body's schema which fields may be sent together.

    apispec cannot read these rules (`Body.together`) from the marshmallow schemas.
    """
    for operation in operations:
        body = operation.accepts
        if body and issubclass(body, Body):
            schemas[body.__name__] |= body.together


def _operation(name: str, operation: Operation) -> dict[str, Any]:
    """Returns the description of an operation.

    Its summary is the first line of the view's docstring.
    """
    summary = (operation.view.__doc__ or "").splitlines()[0]
    success_status = "200"
    if operation.method == "POST":
        success_status = "201"
    answers = {success_status: _success(operation, summary)}
    for code in _errors(operation):
        message = examples.error_message(operation, code)
        answers[str(STATUS[code])] = responses.failure(code, message)
    description = {
        "operationId": name,
        "tags": [operation.path.split("/")[1]],
        "summary": summary,
        "description": f"Needs a key of scope `{operation.scope}`.",
        "parameters": parameters_of(operation),
        "responses": answers,
    }
    if operation.method == "POST":
        body = examples.request_example(operation)
        description["requestBody"] = {
            "required": operation.body_required,
            "content": json_content(operation.accepts, body),
        }
    return description


def _status() -> dict[str, Any]:
    """Returns the description of the request for an invoice's status (STATUS_PATH).

    The invoice's page sends this request every few seconds, and a shop may send it too.
    It needs no API key.
    """
    summary = "What an invoice waits for."
    content = json_content(CheckoutStatus, examples.example_of(CheckoutStatus))
    answers: dict[str, Any] = {"200": {"description": summary, "content": content}}
    for code, failure in responses.page_failures().items():
        answers[str(STATUS[code])] = failure
    return {
        "operationId": "get-checkout-status",
        "summary": summary,
        "description": "Public: needs no key, only the invoice's id. Limited by address, with the"
        " pages: 120 requests a minute for one invoice, 600 for all.",
        "tags": ["invoices"],
        "security": [],
        "parameters": [id_parameter(Invoice)],
        "responses": answers,
    }


def _errors(operation: Operation) -> list[str]:
    """Returns the codes of the errors that the operation may respond with."""
    writes = operation.method == "POST"
    # Every operation may respond with the errors that are not listed here.
    is_possible = {
        "invalid_request": operation.accepts is not None,
        "conflict": writes,
        "payload_too_large": writes,
        "price_unavailable": operation.priced,
        "not_found": "<id>" in operation.path,
    }
    return [code for code in STATUS if is_possible.get(code, True)]


def _list_of(name: str) -> dict[str, Any]:
    items = {
        "type": "array",
        "maxItems": 100,
        "items": component(name),
        "description": "Newest first.",
    }
    return whole({"object": text("Always `list`.", const="list"), "data": items})


def _success(operation: Operation, summary: str) -> dict[str, Any]:
    schema: Any = operation.shows
    if operation.lists:
        schema = f"{operation.shows.__name__}List"
    content = json_content(schema, examples.success_example(operation))
    return responses.success(summary, content)
