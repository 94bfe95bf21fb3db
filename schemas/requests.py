"""The bodies of API requests."""

from collections.abc import Mapping
from typing import Any, ClassVar

from marshmallow import (
    EXCLUDE,
    Schema,
    ValidationError,
    post_load,
    pre_load,
    validate,
    validates_schema,
)

from btcpay.values.errors import InvalidRequest
from schemas.fields import Number, Text, maybe, says

MAX_USD = 1_000_000
# In any currency. A dollar is worth at most about 100,000 units of another currency.
MAX_AMOUNT = 10**11
MAX_HOURS = 8_760


class Body(Schema):
    """The base class of request bodies, which are JSON objects.

    Unknown fields are ignored. A field that is `null` counts as absent. `together` is a
    JSON Schema that says which fields may be sent together; the `fits_...` methods
    enforce it.
    """

    class Meta:
        unknown = EXCLUDE

    together: ClassVar[dict[str, Any]] = {}
    error_messages = {"type": "the body must be a JSON object"}

    @pre_load
    def drop_nulls(self, data: Any, **_: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {name: value for name, value in data.items() if value is not None}


class NewInvoice(Body):
    """The body of the API operation create-invoice (docs/developers/api.md)."""

    amount_usd = Number(
        MAX_USD,
        required=True,
        error_messages={"required": "is required"},
        **says(
            "Amount due, in US dollars; converted to satoshis at the live rate.", 25
        ),
    )
    description = Text(500, **maybe("A memo, which payers see.", "Two mugs"))
    customer_email = Text(320, **maybe("The customer's address.", "ada@example.com"))
    expires_in_hours = Number(
        MAX_HOURS, **maybe("Hours until it expires; without it, never.", 24)
    )


class NewPricedInvoice(NewInvoice):
    """The fields of a new invoice from a command or a page, in any currency.

    The currency is not known here, so the caller must check that the amount does not
    have more decimals than the currency.
    """

    class Meta(Body.Meta):
        exclude = ("amount_usd",)

    amount = Number(MAX_AMOUNT, required=True)


class NewPaymentLink(Body):
    """The body of the API operation create-payment-link (docs/developers/api.md).

    All fields are optional.
    """

    # No oneOf: code generators mistake its alternatives for the whole, and drop the title.
    together = {
        "if": {
            "anyOf": [
                {
                    "properties": {"amount_mode": {"const": "fixed"}},
                    "required": ["amount_mode"],
                },
                {
                    "properties": {"amount_usd": {"type": "number"}},
                    "required": ["amount_usd"],
                },
            ]
        },
        "then": {
            "required": ["amount_usd"],
            "properties": {
                "amount_mode": {"enum": ["fixed", None]},
                "amount_usd": {"type": "number"},
                "min_amount_usd": {"type": "null"},
                "max_amount_usd": {"type": "null"},
            },
        },
    }

    amount_mode = Text(
        validate=validate.OneOf(
            ("fixed", "flexible"), error="must be fixed or flexible"
        ),
        **maybe(
            "Default: fixed when there is an amount_usd, else flexible.", "flexible"
        ),
    )
    amount_usd = Number(
        MAX_USD, **maybe("The price of a fixed link, in US dollars.", 25)
    )
    min_amount_usd = Number(
        MAX_USD, **maybe("The least that a payer of a flexible link may choose.", 1)
    )
    max_amount_usd = Number(
        MAX_USD, **maybe("The most that a payer of a flexible link may choose.", 500)
    )
    title = Text(200, **maybe("The page's title.", "Tip jar"))
    description = Text(
        500, **maybe("Shown on the page and on its invoices.", "Thank you")
    )

    @validates_schema
    def fits_mode(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raises ValidationError if the amounts do not fit the mode or each other.

        A fixed link has an amount, a flexible one may have a minimum and a maximum.
        """
        mode = _mode_of(data)
        if mode == "fixed" and "amount_usd" not in data:
            raise ValidationError("is required when amount_mode is fixed", "amount_usd")
        _refuse_amounts_of_other_mode(data, mode)
        low = data.get("min_amount_usd")
        high = data.get("max_amount_usd")
        if low is not None and high is not None and low > high:
            raise ValidationError("must not exceed max_amount_usd", "min_amount_usd")

    @post_load
    def with_mode(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Adds `amount_mode` to the loaded body if the client did not send it."""
        return data | {"amount_mode": _mode_of(data)}


def _mode_of(link: Mapping[str, Any]) -> str:
    """Returns the link's amount mode. By default a link with a price is fixed."""
    mode: str | None = link.get("amount_mode")
    if mode:
        return mode
    if "amount_usd" in link:
        return "fixed"
    return "flexible"


def _refuse_amounts_of_other_mode(link: Mapping[str, Any], mode: str) -> None:
    """Raises ValidationError if the link has an amount that only the other mode has."""
    amounts_of_other_mode = ["amount_usd"]
    if mode == "fixed":
        amounts_of_other_mode = ["min_amount_usd", "max_amount_usd"]
    for name in amounts_of_other_mode:
        if name not in link:
            continue
        if "amount_mode" not in link:
            raise ValidationError(
                f"amount_usd makes the price fixed: leave it or {name} out"
            )
        raise ValidationError(f"does not go with amount_mode {mode}", name)


class NewPricedLink(NewPaymentLink):
    """The fields of a new payment link from a command or a page.

    The amounts are in the link's currency, although their names end with `_usd`.
    """

    amount_usd = Number(MAX_AMOUNT)
    min_amount_usd = Number(MAX_AMOUNT)
    max_amount_usd = Number(MAX_AMOUNT)


# Created once: creating an instance takes ten times as long as loading a body.
NEW_INVOICE = NewInvoice()
NEW_PRICED_INVOICE = NewPricedInvoice()
NEW_PAYMENT_LINK = NewPaymentLink()
NEW_PRICED_LINK = NewPricedLink()


def load(schema: Schema, data: Any) -> dict[str, Any]:
    """Returns the validated values of `data`.

    Raises InvalidRequest if a field is invalid. The message names every invalid field.
    """
    try:
        loaded: dict[str, Any] = schema.load(data)
    except ValidationError as error:
        raise InvalidRequest(_sentence(error.messages)) from None
    return loaded


def _sentence(messages: Any) -> str:
    """Returns marshmallow's messages as one line: `field reason; field reason`.

    `messages` has a list of reasons by the field's name. Only the first is told.
    """
    parts = []
    for name, reasons in sorted(messages.items()):
        part = reasons[0]
        concerns_one_field = name != "_schema"
        if concerns_one_field:
            part = f"{name} {part}"
        parts.append(part)
    return "; ".join(parts)
