"""Options of commands, validated by the schemas of API request bodies."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import click
from marshmallow import Schema

from btcpay.invoices.links import greatest_amount
from btcpay.values.amounts import NotAnAmount, parse_amount
from btcpay.values.errors import InvalidRequest, TooMuch
from btcpay.values.money import checked_currency, places_of, round_money
from schemas import requests as accepts
from storage.models import Merchant

_JSON_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_MOST_ECHOED = 40  # maximum characters of a wrong amount in an error message


def parse_number(_context: Any, _option: Any, text: str | None) -> Decimal | str | None:
    """Parses an option's text as a JSON number.

    Returns a text that is no JSON number unchanged, since the schema refuses it later.
    Returns None if the option is not given.
    """
    if text is None or not _JSON_NUMBER.fullmatch(text):
        return text
    try:
        return Decimal(text)
    except InvalidOperation:  # the exponent has more than 18 digits
        return text


def validate(schema: Schema, options: Mapping[str, Any]) -> dict[str, Any]:
    """Loads the options by the schema, and returns the loaded values by field.

    The options' parameters have the names of the schema's fields. If a value is invalid,
    raises UsageError with the schema's message, in which each field's name is replaced
    by the option, for example `--amount`.
    """
    try:
        return accepts.load(schema, dict(options))
    except InvalidRequest as error:
        message = str(error)
    for parameter in click.get_current_context().command.params:
        message = re.sub(rf"\b{parameter.name}\b", parameter.opts[0], message)
    raise click.UsageError(message)


def parse_amount_option(
    currency: str,
    amount: Decimal | str | None,
    option: str = "--amount",
) -> Decimal | None:
    """Parses an amount in `currency`, such as `1,234.50`, `€25` or `25 EUR`.

    None and a Decimal are returned unchanged. Raises UsageError, which names `option`, if
    the text is no amount, is ambiguous, or is in another currency.
    """
    if not isinstance(amount, str):
        return amount
    try:
        return parse_amount(amount, currency)
    except NotAnAmount as error:
        message = _problem(error, amount[:_MOST_ECHOED], currency)
        raise click.UsageError(f"{option}: {message}") from None


def _problem(error: NotAnAmount, text: str, currency: str) -> str:
    if error.readings:
        first, second = error.readings
        return (
            f"{text!a} can be read as {first:f} or {second:f}: use a point, no groups"
        )
    if error.foreign:
        return (
            f"the amount is in {currency}, and {error.foreign!a} is another currency's"
        )
    return f"{text!a} is no amount of {currency} such as 25 or 1234.50"


def order_fields(currency: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the validated fields of an order whose --amount is in this currency.

    Raises UsageError if a field is invalid, and TooMuch if the amount is above the
    maximum.
    """
    amount = parse_amount_option(currency, options["amount"])
    fields = validate(accepts.NEW_PRICED_INVOICE, {**options, "amount": amount})
    require_units(currency, [fields["amount"]])
    if fields["amount"] > greatest_amount(currency):
        raise TooMuch(
            f"the amount is worth more than {greatest_amount(currency):,} {currency}"
        )
    return fields


def currency_of(
    merchant: Merchant,
    currency: str | None,
    fields: Mapping[str, Any],
) -> str | None:
    """Returns the currency of the option --amount; None if --usd is given instead.

    `currency` is the option --currency; None means the merchant's currency. Raises
    UsageError if both --amount and --usd or neither of them is given, or if --currency
    is given with --usd. Raises CommandError if the currency is unknown.
    """
    has_usd = fields["amount_usd"] is not None
    has_amount = fields["amount"] is not None
    if has_usd == has_amount:
        raise click.UsageError("say --usd or --amount")
    if has_amount:
        return checked_currency(currency or merchant.currency)
    if currency:
        raise click.UsageError("--currency goes with --amount")
    return None


def require_units(currency: str, amounts: Iterable[Decimal | None]) -> None:
    """Raises UsageError if an amount has more decimals than the currency.

    None in `amounts` is ignored.
    """
    for amount in amounts:
        if amount and amount != round_money(amount, currency):
            places = places_of(currency)
            raise click.UsageError(f"amounts in {currency} have {places} decimals")
