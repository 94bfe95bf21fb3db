"""Parses the fields of the page: amounts, addresses, BIP21 URIs, prices, flags.

For an invalid field, each function raises BadRequest with the field's name.
"""

import re
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from flask import request

from btcpay.sandbox.errors import BadRequest
from btcpay.values.money import SATS_PER_BTC

# 21 million BTC have 16 digits in satoshis.
SATS = re.compile(r"[0-9]{1,16}|[0-9]{1,3}(,[0-9]{3}){1,5}")
BTC = re.compile(r"(?=\.?[0-9])[0-9]{0,8}(\.[0-9]{0,16})?")
USD = re.compile(r"\$?(?=\.?[0-9])[0-9,]{0,16}(\.[0-9]{0,2})?")
LONGEST_FIELD = 2_000  # the maximum, in characters
WHOLE = re.compile("[1-9][0-9]{0,15}")


def field_error(name: str, problem: str) -> BadRequest:
    """Returns the error about a field.

    The message begins with the field's name in words, for example "Amount usd" for
    `amount_usd`.
    """
    title = name.replace("_", " ").capitalize()
    return BadRequest(f"{title}: {problem}")


def field(name: str) -> str:
    """Returns the field's text without surrounding blanks; "" if the field is missing.

    Raises BadRequest if the text is too long.
    """
    text = request.form.get(name, "")
    # Check the length before urlsplit, which could take seconds.
    if len(text) > LONGEST_FIELD:
        raise field_error(name, f"more than {LONGEST_FIELD} characters")
    return text.strip()


class PaymentOrder(NamedTuple):
    """An address, and the satoshis to pay to it."""

    address: str
    sats: int


def read_order() -> PaymentOrder:
    """Returns the payment from the fields `address` and `amount`.

    `address` may be a BIP21 URI. The amount in the URI is used if the field `amount` is
    empty.
    """
    address = field("address")
    amount = field("amount")
    btc = ""
    if address.lower().startswith("bitcoin:"):
        uri = urlsplit(address)
        address = unquote(uri.path)
        btc = parse_qs(uri.query).get("amount", [""])[0]
    if not address:
        raise field_error("address", "give a regtest address or a bitcoin: URI")
    if btc and not amount:
        return PaymentOrder(address, _btc_to_sats(btc))
    return PaymentOrder(address, _read_amount(amount))


def _read_amount(text: str) -> int:
    """Parses an amount: satoshis such as `41,667`, or BTC with a decimal point."""
    if "." in text:
        return _btc_to_sats(text)
    sats = 0
    if SATS.fullmatch(text):
        sats = int(text.replace(",", ""))
    if not sats:
        raise field_error(
            "amount", "give satoshis, such as 41667, or BTC with a point: 0.00041667"
        )
    return sats


def read_count(name: str) -> int:
    """Parses a whole number of at least 1. An empty field means 1."""
    text = field(name) or "1"
    if not WHOLE.fullmatch(text):
        raise field_error(name, "give a whole number of at least 1")
    return int(text)


def read_usd(name: str, most: int) -> Decimal:
    """Parses a price or an amount in dollars, from 0.01 to `most`."""
    text = field(name)
    usd = Decimal(0)
    if USD.fullmatch(text):
        usd = Decimal(text.strip("$").replace(",", ""))
    if not 0 < usd <= most:
        raise field_error(name, f"give 0.01 to {most:,}, with at most two decimals")
    return usd


def read_state(*states: str) -> str:
    """Returns the field `state`, which must be one of `states`."""
    state = field("state")
    if state not in states:
        raise field_error("state", f"give {', '.join(states[:-1])} or {states[-1]}")
    return state


def read_flag(name: str) -> bool:
    text = field(name)
    if text not in ("", "0", "1"):
        raise field_error(name, "give 1 or nothing")
    return text == "1"


def _btc_to_sats(text: str) -> int:
    sats = Decimal(0)
    if BTC.fullmatch(text):
        sats = Decimal(text) * SATS_PER_BTC
    if sats < 1 or sats % 1:
        raise field_error("amount", f"{text} BTC is not a whole number of satoshis")
    return int(sats)
