"""The bodies and queries that plug-ins send, by Greenfield's names.

A refused value raises a ValidationError that names its field.
"""

from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal
from typing import Any, TypeVar

import orjson
from marshmallow import Schema, ValidationError, fields, validate

from btcpay.parts.greenfield import queries
from btcpay.values.errors import CommandError, TooMuch
from btcpay.values.hosts import MAX_URL_CHARACTERS
from btcpay.web.body import parse, read_body
from schemas.any_case import AnyCase, Unknown, Word, Words, value_of
from schemas.fields import Text

SMALLEST = Decimal("0.00000001")  # a satoshi in bitcoin
# Confirmations by the name of a speed.
SPEEDS = {"HighSpeed": 1, "MediumSpeed": 1, "LowMediumSpeed": 2, "LowSpeed": 6}
SPEED_NAMES = {1: "MediumSpeed", 2: "LowMediumSpeed"}  # more are LowSpeed
MARKS = ("Invalid", "Settled")
MAX_METADATA = 16_384  # bytes of JSON; the most that a plug-in is known to send is 301
T = TypeVar("T")


class Checkout(AnyCase):
    error_messages = {"type": "must be a JSON object"}

    speedPolicy = Word(SPEEDS)
    paymentMethods = Words()
    expirationMinutes = fields.Integer(validate=validate.Range(1, 525_600))
    paymentTolerance = fields.Decimal(2, ROUND_DOWN, validate=validate.Range(0, 100))
    # Its `{OrderId}` may stand there many times, each for 500 characters.
    redirectURL = fields.String(validate=validate.Length(max=MAX_URL_CHARACTERS))
    redirectAutomatically = fields.Boolean()
    defaultLanguage = fields.String(validate=validate.Length(max=20))


class NewOrder(AnyCase):
    """Body of POST invoices; the amount may be a text."""

    amount = fields.Decimal(
        required=True,
        allow_nan=False,
        validate=validate.Range(SMALLEST, 10**15),
        error_messages={
            "required": "is required: an invoice without one is not possible here"
        },
    )
    currency = fields.String()
    metadata = fields.Dict(load_default=dict)
    checkout = fields.Nested(Checkout, load_default=dict)


# Bodies of PUT invoices, and of POST status.
NewMetadata = AnyCase.from_dict({"metadata": fields.Dict(required=True)})
Mark = AnyCase.from_dict({"status": Word(MARKS, required=True)})


class OrderFilters(AnyCase):
    """The query of GET invoices; several values of a filter mean any of them."""

    orderId = fields.List(Text())
    status = fields.List(Word(queries.STATUSES), load_default=queries.STATUSES)
    take = fields.Integer(load_default=50, validate=validate.Range(1, 1000))
    skip = fields.Integer(load_default=0, validate=validate.Range(0, 10**9))
    textSearch = Unknown()
    startDate = Unknown()
    endDate = Unknown()
    includePaymentMethods = fields.Raw()  # each has them at a path of its own


class RateFilters(AnyCase):
    """The query of GET rates."""

    currencyPair = Words(validate=validate.Length(max=5, error="at most five at once"))


class AuthorizedEvents(AnyCase):
    error_messages = {"type": "must be a JSON object"}

    everything = fields.Boolean(load_default=False)
    specificEvents = Words(load_default=list)


class NewWebhook(AnyCase):
    """Body of POST and PUT webhooks."""

    url = fields.String(required=True)
    enabled = fields.Boolean(load_default=True)
    secret = Text(200)
    authorizedEvents = fields.Nested(
        AuthorizedEvents, load_default={"everything": True}
    )


def read_fields(schema: Schema) -> tuple[dict[str, Any], str | None]:
    """The body as its schema loads it, and its metadata as JSON text; None if it has none."""
    body = read_body()
    value = parse(body)
    # Before the schema, which would take minutes for huge numbers that this refuses.
    try:
        stored = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValidationError(f"the body cannot be kept: {error}") from None
    values: dict[str, Any] = schema.load(value)
    metadata = value_of(stored, "metadata")
    if not metadata:
        return values, None
    text = orjson.dumps(metadata)
    if len(text) > MAX_METADATA:
        raise ValidationError(f"is longer than {MAX_METADATA} bytes", "metadata")
    if _is_beyond_64_bits(values.get("metadata")):
        raise ValidationError(
            "has a whole number of more than 64 bits: send a text", "metadata"
        )
    return values, text.decode()


def _is_beyond_64_bits(value: Any) -> bool:
    """True if it contains a whole number that would be rounded to a double."""
    if isinstance(value, Decimal):
        return value.as_tuple().exponent == 0 and not -(1 << 63) <= value < 1 << 64
    if isinstance(value, dict):
        return any(map(_is_beyond_64_bits, value.values()))
    if isinstance(value, list):
        return any(map(_is_beyond_64_bits, value))
    return False


def check_field(path: str, check: Callable[..., T], *values: Any) -> T:
    """The result of `check`; its refusal becomes a ValidationError of this field."""
    try:
        return check(*values)
    except (CommandError, TooMuch) as error:
        raise ValidationError(str(error), path) from None
