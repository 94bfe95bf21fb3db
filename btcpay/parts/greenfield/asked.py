"""The bodies and queries that plug-ins send, in Greenfield's names, and the orders they ask for.

A value that is refused is a ValidationError that names its field.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import ROUND_DOWN, Decimal
from typing import Any, TypeVar
from urllib.parse import quote

import orjson
from marshmallow import Schema, ValidationError, fields, validate

from btcpay.invoices.orders import BTC, Order
from btcpay.merchants.branding import INVOICE
from btcpay.parts.greenfield import queries
from btcpay.parts.greenfield.keys import own_url
from btcpay.values.errors import CommandError, TooMuch
from btcpay.values.hosts import MAX_URL_CHARACTERS
from btcpay.values.money import (
    MAX_MONEY_BTC,
    MAX_MONEY_SATS,
    checked_currency,
    rounded,
    unit_of,
)
from btcpay.values.texts import MAX_CHARACTERS, one_line
from btcpay.web.body import parse, read_body
from schemas.any_case import AnyCase, Unknown, Word, Words, value_of
from schemas.fields import Text
from schemas.requests import MAX_AMOUNT

SATS = "SATS"
SMALLEST = Decimal(
    "0.00000001"
)  # a satoshi in bitcoin; Decimal's own smallest becomes nothing
# The most that can exist, and the smallest part of it.
_IN_BITCOIN = {BTC: (MAX_MONEY_BTC, SMALLEST), SATS: (MAX_MONEY_SATS, Decimal(1))}
BITCOIN = {"btc", "btc-chain", "btc-onchain", "btc_onchain"}  # in small letters
SPEEDS = {
    "HighSpeed": 1,
    "MediumSpeed": 1,
    "LowMediumSpeed": 2,
    "LowSpeed": 6,
}  # confirmations
SPEED_NAMES = {1: "MediumSpeed", 2: "LowMediumSpeed"}  # of more: LowSpeed
MARKS = ("Invalid", "Settled")
# Characters; of a number, since an entry of an index of PostgreSQL has at most 2,704 bytes.
MAX_NUMBER = 500
_MAX_DESCRIPTION = 500
_MAX_EMAIL = 320
MAX_METADATA = 16_384  # bytes of JSON; the most that a plug-in is known to send is 301
_KEPT = ("redirectURL", "redirectAutomatically", "defaultLanguage")
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


class Wanted(AnyCase):
    """The query of GET invoices; several values of a filter mean any of them."""

    orderId = fields.List(Text())
    status = fields.List(Word(queries.STATUSES), load_default=queries.STATUSES)
    take = fields.Integer(load_default=50, validate=validate.Range(1, 1000))
    skip = fields.Integer(load_default=0, validate=validate.Range(0, 10**9))
    textSearch, startDate, endDate = (Unknown() for _ in range(3))
    includePaymentMethods = fields.Raw()  # each has them at a path of its own


class Pairs(AnyCase):
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


def body_of(schema: Schema) -> tuple[dict[str, Any], str | None]:
    """The body as its schema loads it, and the JSON text of its metadata, None for none."""
    body = read_body()
    value = parse(body)
    try:  # first, since huge numbers that it refuses would take minutes to write as decimals
        sent = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValidationError(f"the body cannot be kept: {error}") from None
    asked = schema.load(value)
    said = value_of(sent, "metadata")
    if not said:
        return asked, None
    metadata = orjson.dumps(said)
    if len(metadata) > MAX_METADATA:
        raise ValidationError(f"is longer than {MAX_METADATA} bytes", "metadata")
    if _is_beyond_64_bits(asked.get("metadata")):
        raise ValidationError(
            "has a whole number of more than 64 bits: send a text", "metadata"
        )
    return asked, metadata.decode()


def _is_beyond_64_bits(value: Any) -> bool:
    """True if it contains a whole number that would be rounded to a double."""
    if isinstance(value, Decimal):
        return value.as_tuple().exponent == 0 and not -(1 << 63) <= value < 1 << 64
    within = value.values() if isinstance(value, dict) else value
    return isinstance(value, dict | list) and any(map(_is_beyond_64_bits, within))


def checked(path: str, check: Callable[..., T], *values: Any) -> T:
    """The result of `check`; its refusal becomes a ValidationError of this field."""
    try:
        return check(*values)
    except (CommandError, TooMuch) as error:
        raise ValidationError(str(error), path) from None


def order_id_of(metadata: dict[str, Any]) -> str | None:
    number = value_of(metadata, "orderId")
    if "\0" in str(number):
        raise ValidationError(
            "holds U+0000, which PostgreSQL does not take", "metadata.orderId"
        )
    if isinstance(number, str | Decimal):
        return str(number)[:MAX_NUMBER]
    return None


def order_of(
    store: queries.OfMerchant,
    asked: dict[str, Any],
    metadata: str | None,
    usual_min: int,
) -> Order:
    """The invoice that a shop asks for; it ends after `usual_min` unless the shop names a time."""
    named = str(asked.get("currency", store.currency)).upper()
    currency, amount = _money(named, asked["amount"])
    checkout = asked["checkout"]
    said = asked["metadata"]
    order_id = order_id_of(said)
    email = value_of(said, "buyerEmail")
    way_back = checkout.get("redirectURL", "").replace("{InvoiceId}", INVOICE)
    way_back = way_back.replace("{OrderId}", quote(order_id or "", safe=""))
    if way_back:
        way_back = checked("checkout.redirectURL", own_url, way_back, store.shop_url)
    methods = {method.lower() for method in checkout.get("paymentMethods", ())}
    if methods and methods.isdisjoint(BITCOIN):
        raise ValidationError(
            "only BTC on the chain is possible here", "checkout.paymentMethods"
        )
    tolerance_percent = checkout.get("paymentTolerance")
    kept = {name: checkout[name] for name in _KEPT if name in checkout}
    details = {
        "description": one_line(value_of(said, "itemDesc"), _MAX_DESCRIPTION),
        "customer_email": email if one_line(email, _MAX_EMAIL) == email else None,
        "reference": one_line(order_id, MAX_CHARACTERS["reference"]),
        "return_url": way_back or None,
        "confirmations": SPEEDS.get(checkout.get("speedPolicy")),
        "tolerance_percent": None
        if tolerance_percent is None
        else str(tolerance_percent),
        "store_id": store.id,
        "order_id": order_id,
        "shop_order": json.dumps(
            {"amount": f"{asked['amount']:f}", "currency": named} | kept
        ),
        "metadata": metadata,
    }
    life = timedelta(minutes=checkout.get("expirationMinutes", usual_min))
    return Order(store.merchant_id, amount, life, details, currency)


def _money(code: str, amount: Decimal) -> tuple[str, Decimal]:
    """The currency and the amount asked for, with satoshis turned into bitcoin."""
    most, unit = _IN_BITCOIN.get(code, (MAX_AMOUNT, None))
    if unit is None:
        checked("currency", checked_currency, code)
        amount = rounded(amount, code)
    elif amount % unit:
        raise ValidationError("has a part of a satoshi", "amount")
    if not 0 < amount <= most:
        least = unit or unit_of(code)
        raise ValidationError(f"is not from {least:f} to {most:,} {code}", "amount")
    if code == SATS:
        return (BTC, amount * SMALLEST)
    return (code, amount)
