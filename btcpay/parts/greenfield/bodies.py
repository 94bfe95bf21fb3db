"""Schemas of the request bodies and query strings of the Greenfield API.

An invalid value raises a ValidationError that names its field.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_DOWN, Decimal
from typing import Any, NamedTuple

import orjson
from marshmallow import Schema, ValidationError, fields, validate

from btcpay.parts.greenfield import queries
from btcpay.values.errors import CommandError, TooMuch
from btcpay.values.hosts import MAX_URL_CHARACTERS
from btcpay.web.body import parse, read_body
from schemas.any_case import AnyCase, Unknown, Word, Words, value_of
from schemas.fields import Text

SMALLEST = Decimal("0.00000001")  # one satoshi, in bitcoin
# The confirmations that Greenfield's speed policies require.
SPEEDS = {"HighSpeed": 1, "MediumSpeed": 1, "LowMediumSpeed": 2, "LowSpeed": 6}
SPEED_NAMES = {1: "MediumSpeed", 2: "LowMediumSpeed"}  # a higher number is LowSpeed
MARKS = ("Invalid", "Settled")
MAX_METADATA = 16_384  # bytes of JSON; the largest known of a plug-in has 301


class Checkout(AnyCase):
    error_messages = {"type": "must be a JSON object"}

    speedPolicy = Word(SPEEDS)
    paymentMethods = Words()
    expirationMinutes = fields.Integer(validate=validate.Range(1, 525_600))
    paymentTolerance = fields.Decimal(2, ROUND_DOWN, validate=validate.Range(0, 100))
    # The placeholder `{OrderId}` can occur many times, and each is replaced by up to 500
    # characters.
    redirectURL = fields.String(validate=validate.Length(max=MAX_URL_CHARACTERS))
    redirectAutomatically = fields.Boolean()
    defaultLanguage = fields.String(validate=validate.Length(max=20))


class NewOrder(AnyCase):
    """The body of POST invoices. The amount may be a number or a string."""

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


# The bodies of PUT invoices and of POST status.
NewMetadata = AnyCase.from_dict({"metadata": fields.Dict(required=True)})
Mark = AnyCase.from_dict({"status": Word(MARKS, required=True)})


class OrderFilters(AnyCase):
    """The query string of GET invoices.

    If a filter has several values, an invoice must match one of them.
    """

    orderId = fields.List(Text())
    status = fields.List(Word(queries.STATUSES), load_default=queries.STATUSES)
    take = fields.Integer(load_default=50, validate=validate.Range(1, 1000))
    skip = fields.Integer(load_default=0, validate=validate.Range(0, 10**9))
    textSearch = Unknown()
    startDate = Unknown()
    endDate = Unknown()
    includePaymentMethods = fields.Raw()  # ignored: they have a path of their own


class RateFilters(AnyCase):
    """The query string of GET rates."""

    currencyPair = Words(validate=validate.Length(max=5, error="at most five at once"))


class AuthorizedEvents(AnyCase):
    error_messages = {"type": "must be a JSON object"}

    everything = fields.Boolean(load_default=False)
    specificEvents = Words(load_default=list)


class NewWebhook(AnyCase):
    """The body of POST and PUT webhooks."""

    url = fields.String(required=True)
    enabled = fields.Boolean(load_default=True)
    secret = Text(200)
    authorizedEvents = fields.Nested(
        AuthorizedEvents, load_default={"everything": True}
    )


class LoadedBody(NamedTuple):
    """A request's body as its schema loads it.

    `metadata` is the body's metadata as JSON text; None if it has none.
    """

    fields: dict[str, Any]
    metadata: str | None


def read_fields(schema: Schema) -> LoadedBody:
    """Loads the request's body.

    Raises ValidationError if the body is invalid, or if its metadata are too long or
    contain too large a number.
    """
    raw_body = read_body()
    # The body is parsed twice. `parse` keeps every digit of an amount. orjson keeps the
    # metadata as the request has them, and raises for numbers of so many digits that the
    # schema would need minutes for them.
    exact_body = parse(raw_body)
    try:
        body_as_sent = orjson.loads(raw_body)
    except orjson.JSONDecodeError as error:
        raise ValidationError(f"the body cannot be kept: {error}") from None
    values: dict[str, Any] = schema.load(exact_body)
    metadata = value_of(body_as_sent, "metadata")
    if not metadata:
        return LoadedBody(values, None)
    return LoadedBody(values, _metadata_text(metadata, values.get("metadata")))


def _metadata_text(metadata: Any, exact_metadata: Any) -> str:
    """Returns the metadata as JSON text.

    `exact_metadata` are the same metadata, with each number as a Decimal. Raises
    ValidationError if the text is too long, or if a number is too large for it.
    """
    text = orjson.dumps(metadata)
    if len(text) > MAX_METADATA:
        raise ValidationError(f"is longer than {MAX_METADATA} bytes", "metadata")
    if _is_beyond_64_bits(exact_metadata):
        raise ValidationError(
            "has a whole number of more than 64 bits: send a text", "metadata"
        )
    return text.decode()


def _is_beyond_64_bits(value: Any) -> bool:
    """True if the JSON value is or contains an integer of more than 64 bits.

    orjson would round such an integer to a double.
    """
    if isinstance(value, Decimal):
        is_whole = value.as_tuple().exponent == 0
        fits = -(2**63) <= value < 2**64
        return is_whole and not fits
    if isinstance(value, dict):
        return any(_is_beyond_64_bits(each) for each in value.values())
    if isinstance(value, list):
        return any(_is_beyond_64_bits(each) for each in value)
    return False


@contextmanager
def errors_about(path: str) -> Iterator[None]:
    """Replaces a CommandError or TooMuch in the block by a ValidationError.

    The ValidationError has the same message, and is about the field `path`.
    """
    try:
        yield
    except (CommandError, TooMuch) as error:
        raise ValidationError(str(error), path) from None
