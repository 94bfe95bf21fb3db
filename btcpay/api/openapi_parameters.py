"""Makes the parameters of the OpenAPI document: headers, ids in paths, and queries."""

from collections.abc import Iterable
from typing import Any

from btcpay.api import openapi_examples as examples
from btcpay.api.call import Operation
from schemas.resources import Resource


def parameters_of(operation: Operation) -> list[dict[str, Any]]:
    """Returns the operation's parameters: a header, an id in the path, or a query."""
    if operation.method == "POST":
        return [_idempotency_parameter()]
    if "<id>" in operation.path:
        return [id_parameter(operation.shows)]
    if operation.accepts:
        return [{"in": "query", "schema": operation.accepts}]
    return []


def _idempotency_parameter() -> dict[str, Any]:
    return {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "Makes retries safe: a retry never creates a duplicate resource.",
        "schema": {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "pattern": "^[ -~]*$",
        },
        "example": examples.IDEMPOTENCY_KEY,
    }


def id_parameter(resource: type[Resource]) -> dict[str, Any]:
    return {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "The id from the answer that created it.",
        "schema": {"type": "string"},
        "example": examples.example_of(resource)["id"],
    }


def add_parameter_examples(parameters: Iterable[dict[str, Any]]) -> None:
    """Adds an example to each query parameter. apispec has made their descriptions."""
    for parameter in parameters:
        if parameter["in"] == "query":
            parameter["example"] = examples.PARAMETERS[parameter["name"]]
