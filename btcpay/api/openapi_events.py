"""Makes the schemas of events, for `webhooks` in the OpenAPI document."""

from typing import Any

from btcpay.notify.events import KINDS, PART_RESOURCES
from btcpay.notify.kinds import EventKind, Kind
from btcpay.settlement.attention import REASONS

Schema = dict[str, Any]


def text(description: str, **more: Any) -> Schema:
    """Returns the schema of a string. `more` are further keywords of JSON Schema."""
    return {"type": "string", "description": description} | more


def whole(properties: dict[str, Any]) -> Schema:
    """Returns the schema of an object that has all of these properties."""
    return {"type": "object", "required": list(properties), "properties": properties}


def component(name: str, description: str = "") -> Schema:
    """Returns a reference to a schema in `components` of the OpenAPI document."""
    reference = {"$ref": f"#/components/schemas/{name}"}
    if description:
        reference["description"] = description
    return reference


def _sats(description: str) -> Schema:
    return {
        "type": "integer",
        "minimum": 0,
        "description": description,
        "examples": [41667],
    }


def _text_or_null(description: str, example: str) -> Schema:
    return {
        "type": ["string", "null"],
        "description": description,
        "examples": [example],
    }


_TIME = text(
    "When it happened.", format="date-time", examples=["2026-11-21T06:12:37.806Z"]
)
_TEST = {
    "type": "boolean",
    "const": True,
    "description": "Only in a made-up event, which somebody sends to try the receiver:"
    " accept it and do nothing.",
}
_TX_HASH = text(
    "The transaction's hash, in hex.",
    examples=["70f36abe1ff876bcbb835c7078f979ede3f00e67ab61f41b8de2513eaca052d3"],
)
_SIGHTING = whole(
    {
        "tx_hash": _TX_HASH,
        "amount_sats": _sats("The sum of its outputs to the address."),
    }
)
# Members of `data` beside the resource, if an event is about an invoice or a payment.
_BESIDE_INVOICE: dict[str, Any] = {
    "reference": _text_or_null(
        "The shop's order number, if the invoice was made with one.", "10442"
    ),
    "customer_name": _text_or_null(
        "What the payer of a payment link gave as their name.", "Ada Lovelace"
    ),
    "customer_note": _text_or_null(
        "What the payer of a payment link wrote to the seller.", "Table 7"
    ),
    "received_sats": _sats("What counts towards the invoice, confirmed or not."),
    "unconfirmed_sats": _sats(
        "The part of it that is not deep enough in the chain yet."
    ),
    "missing_sats": _sats("What is still to be sent."),
    "attention": {
        "type": ["string", "null"],
        "enum": [*REASONS, None],
        "description": "Why the invoice needs attention; null when it does not.",
    },
}
_HEADERS = {
    "webhook-id": "the event's id, the same at each attempt: it tells repeats from new events",
    "webhook-timestamp": "when this attempt was made, in seconds since 1970 UTC",
    "webhook-signature": "`v1,` and the base64 of HMAC-SHA256 over id.timestamp.body; two of them,"
    " separated by a space, for a day after the secret was rotated",
}
_RESOURCE = "The resource, with the fields that the operations answer."
_SEEN = (EventKind.INVOICE_PAYMENT_SEEN, EventKind.INVOICE_PAYMENT_VANISHED)


def webhooks() -> dict[str, Any]:
    """Returns the member `webhooks` of the document: the request of each kind of event."""
    return {kind.value: {"post": _operation(kind)} for kind in KINDS.values()}


def event_schemas() -> dict[str, Schema]:
    """Returns the schemas of all events by name.

    Also returns the schemas of parts' resources (parts are optional plug-ins), to which
    the schemas of events refer.
    """
    schemas = {
        name.title(): whole(resource.properties)
        for name, resource in PART_RESOURCES.items()
    }
    for kind in KINDS.values():
        schemas[_name(kind)] = _schema(kind)
        schemas[_data_name(kind)] = _data(kind)
    return {"Sighting": _SIGHTING} | schemas


def _name(kind: Kind) -> str:
    return kind.value.title().replace("_", "").replace(".", "") + "Event"


def _data_name(kind: Kind) -> str:
    """Returns the name of the schema of the event's `data`.

    All events about the same kind of resource share one schema. The events in _SEEN,
    which are about a bitcoin transaction, have another one.
    """
    if kind in _SEEN:
        return "SightingEventData"
    return kind.resource.title().replace("_", "") + "EventData"


def _operation(kind: Kind) -> dict[str, Any]:
    """Returns the description of the request that sends an event to a webhook."""
    return {
        "operationId": f"on-{kind.value.replace('.', '-').replace('_', '-')}",
        "tags": ["events"],
        "summary": kind.meaning,
        "security": [],
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": description,
                "schema": {"type": "string"},
            }
            for name, description in _HEADERS.items()
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": component(_name(kind))}},
        },
        "responses": {
            "2XX": {"description": "accepted; the body of the answer is not read"},
            "410": {"description": "disables the endpoint: nothing more is sent to it"},
            "default": {"description": "it is sent again later, up to ten times"},
        },
    }


def _schema(kind: Kind) -> Schema:
    kind_text = text("The kind of the event.", const=kind.value)
    data = component(_data_name(kind), "What it happened to, as it was then.")
    schema = whole({"type": kind_text, "timestamp": _TIME, "data": data})
    schema["properties"]["test"] = _TEST
    return schema


def _data(kind: Kind) -> Schema:
    """Returns the schema of the event's `data`: the resource, and values beside it."""
    if kind.resource in PART_RESOURCES:
        resource = component(kind.resource.title(), "The resource, whole.")
        return whole({kind.resource: resource})
    if kind.resource == "payment_link":
        return whole({"payment_link": component("PaymentLink", _RESOURCE)})
    members = {"invoice": component("Invoice", _RESOURCE)} | _BESIDE_INVOICE
    if kind.resource == "payment":
        members = {"payment": component("Payment", _RESOURCE)} | members
    if kind in _SEEN:
        transaction = component("Sighting", "What was seen or has vanished.")
        members["transaction"] = transaction
    return whole(members)
