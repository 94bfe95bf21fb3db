"""What plug-ins send: an order, its page, and what is looked for. Names are Greenfield's."""

from decimal import ROUND_DOWN, Decimal
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields, pre_load, validate

BITCOIN = ("BTC", "BTC-CHAIN", "BTC-OnChain", "BTC_OnChain")
SPEEDS = {"HighSpeed": 1, "MediumSpeed": 1, "LowMediumSpeed": 2, "LowSpeed": 6}  # confirmations
MARKS = ("Invalid", "Settled", "invalid", "settled")  # the latter by btcpay-python-sdk
SMALLEST = Decimal("0.00000001")  # a satoshi in bitcoin; Decimal's own smallest becomes nothing
MAX_NUMBER = 500  # characters; an entry of an index of PostgreSQL has at most 2,704 bytes
STATUSES = ("New", "Processing", "Settled", "Expired", "Invalid")


def _keepable(value: Any) -> None:
    """Raises ValidationError for a text that PostgreSQL does not take."""
    if "\0" in str(value):
        raise ValidationError("holds U+0000")


class _Asked(Schema):
    """Unknown fields are ignored, `null` means absent: plug-ins send all that they know."""

    class Meta:
        unknown = EXCLUDE

    @pre_load
    def drop_nulls(self, data: Any, **_: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {name: value for name, value in data.items() if value is not None}


class Checkout(_Asked):
    """What is asked of an invoice's page, and of its payment."""

    speedPolicy = fields.String(validate=validate.OneOf(list(SPEEDS)))
    paymentMethods = fields.List(fields.String())
    defaultPaymentMethod = fields.String()
    expirationMinutes = fields.Integer(validate=validate.Range(1, 525_600))
    paymentTolerance = fields.Decimal(2, ROUND_DOWN, validate=validate.Range(0, 100))
    redirectURL = fields.String()
    redirectAutomatically = fields.Boolean()
    defaultLanguage = fields.String(validate=validate.Length(max=20))


class Metadata(_Asked):
    """Of any JSON what an invoice shows."""

    orderId = fields.Raw(validate=_keepable)
    itemDesc = fields.Raw()
    buyerEmail = fields.Raw()


class NewOrder(_Asked):
    """Body of POST invoices; the amount may be a text."""

    amount = fields.Decimal(
        required=True,
        allow_nan=False,
        validate=validate.Range(SMALLEST, 10**15),
        error_messages={"required": "is required: an invoice without one is not possible here"},
    )
    currency = fields.String()
    metadata = fields.Nested(Metadata)
    checkout = fields.Nested(Checkout)


class AuthorizedEvents(_Asked):
    everything = fields.Boolean(load_default=False)
    specificEvents = fields.List(fields.String(), load_default=list)


class NewWebhook(_Asked):
    """Body of POST and PUT webhooks."""

    url = fields.String(required=True, validate=validate.Length(max=2000))
    enabled = fields.Boolean(load_default=True)
    secret = fields.String(validate=validate.Length(1, 200))
    authorizedEvents = fields.Nested(AuthorizedEvents)


class MetadataAnew(_Asked):
    """Body of PUT invoices."""

    metadata = fields.Nested(Metadata, required=True)


class Word(_Asked):
    """Body of POST status."""

    status = fields.String(required=True, validate=validate.OneOf(MARKS))


class Wanted(Schema):
    """The query of GET invoices."""

    class Meta:
        unknown = EXCLUDE

    orderId = fields.String(validate=_keepable)
    status = fields.String(validate=validate.OneOf(STATUSES))
    take = fields.Integer(load_default=50, validate=validate.Range(1, 1000))
    skip = fields.Integer(load_default=0, validate=validate.Range(0, 10**9))


def mistakes(error: ValidationError) -> list[tuple[str, str]]:
    """Each field's dotted path with what is wrong with it."""

    def walk(path: str, found: Any) -> list[tuple[str, str]]:
        if isinstance(found, dict):
            return [
                one
                for name, below in found.items()
                for one in walk(path if name == "_schema" else f"{path}.{name}".strip("."), below)
            ]
        return [(path, str(message)) for message in found]

    return walk("", error.messages)
