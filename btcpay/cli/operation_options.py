"""Options that stand for the fields of an operation's body: the same schema judges them."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import click
from marshmallow import Schema

from btcpay.invoices.links import most
from btcpay.values.amounts import NotAnAmount, parse_amount
from btcpay.values.errors import InvalidRequest, TooMuch
from btcpay.values.money import checked_currency, places_of, rounded
from schemas import requests as accepts
from storage.models import Merchant

_JSON_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def number(_context: Any, _option: Any, text: str | None) -> Decimal | str | None:
    """The option's text as a JSON number; any other text stays, for the schema to refuse."""
    if text is None or not _JSON_NUMBER.fullmatch(text):
        return text
    try:
        return Decimal(text)
    except InvalidOperation:  # its exponent has more than 18 digits
        return text


def validate(schema: Schema, options: Mapping[str, Any]) -> dict[str, Any]:
    """The values that the schema makes of options with its fields' names.

    Raises UsageError with the operation's own words, with options in place of fields.
    """
    try:
        return accepts.load(schema, dict(options))
    except InvalidRequest as error:
        shown = str(error)
        for parameter in click.get_current_context().command.params:
            shown = re.sub(rf"\b{parameter.name}\b", parameter.opts[0], shown)
        raise click.UsageError(shown) from None


def parse_amount_option(
    currency: str, given: Decimal | str | None, option: str = "--amount"
) -> Decimal | None:
    """An amount of this currency, which may have its sign, its code or groups. Raises UsageError.

    A JSON number is the number that it is, as programs give it.
    """
    if not isinstance(given, str):
        return given
    try:
        return parse_amount(given, currency)
    except NotAnAmount as error:
        typed = f"{given[:40]!a}"
        if error.readings:
            one, other = error.readings
            message = (
                f"{typed} can be read as {one:f} or {other:f}: use a point, no groups"
            )
        elif error.foreign:
            message = f"the amount is in {currency}, and {error.foreign!a} is another currency's"
        else:
            message = f"{typed} is no amount of {currency} such as 25 or 1234.50"
        raise click.UsageError(f"{option}: {message}") from None


def order_fields(currency: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an order for an --amount of this currency. Raises UsageError, TooMuch."""
    amount = parse_amount_option(currency, options["amount"])
    wanted = validate(accepts.NEW_PRICED_INVOICE, {**options, "amount": amount})
    require_units(currency, [wanted["amount"]])
    if wanted["amount"] > most(currency):
        raise TooMuch(f"the amount is worth more than {most(currency):,} {currency}")
    return wanted


def currency_of(
    merchant: Merchant, currency: str | None, fields: Mapping[str, Any]
) -> str | None:
    """The currency of --amount; None where --usd is given. Raises UsageError, CommandError."""
    if (fields["amount_usd"] is None) == (fields["amount"] is None):
        raise click.UsageError("say --usd or --amount")
    if fields["amount"] is None and currency:
        raise click.UsageError("--currency goes with --amount")
    if fields["amount"] is None:
        return None
    return checked_currency(currency or merchant.currency)


def require_units(currency: str, amounts: Iterable[Decimal | None]) -> None:
    """Raises UsageError for more decimals than the currency has; `amounts` are validated."""
    if any(amount and amount != rounded(amount, currency) for amount in amounts):
        raise click.UsageError(
            f"amounts in {currency} have {places_of(currency)} decimals"
        )
