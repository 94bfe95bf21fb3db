"""Texts that people type into the page's fields: amounts, addresses, BIP21 URIs, prices, switches.

Every reader raises BadRequest, naming the field as the page labels it.
"""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from btcpay.sandbox.errors import BadRequest
from btcpay.values.money import SATS_PER_BTC

MAX_DIGITS = 16  # 21 million BTC in satoshis
LABELS = {
    "address": "Address",
    "invoice": "Invoice",
    "amount": "Amount",
    "blocks": "Blocks",
    "away": "Take the money back",
    "depth": "Blocks to undo",
    "double_spend": "Pay elsewhere instead",
    "state": "Up or down",
    "usd": "Dollars for a bitcoin",
    "amount_usd": "Dollars",
    "minutes": "Minutes",
    "quick": "Quick",
    "scene": "Scene",
}
SATS = re.compile(r"([0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?: ?(?:sats?|satoshis?))?", re.IGNORECASE)
BTC = re.compile(r"([0-9]*\.[0-9]+|[0-9]+(?= ?btc))(?: ?btc)?", re.IGNORECASE)

Form = Mapping[str, str]


class Order(NamedTuple):
    address: str
    amount_sats: int


def refused(name: str, why: str) -> BadRequest:
    return BadRequest(f"{LABELS[name]}: {why}")


def field(form: Form, name: str) -> str:
    """The field without the spaces around it; empty where there is none."""
    return form.get(name, "").strip()


def read_order(form: Form) -> Order:
    """Fields `address` (or a BIP21 URI) and `amount`, which overrides the URI's."""
    given, amount = field(form, "address"), field(form, "amount")
    address, uri_sats = _read_uri(given) if given.lower().startswith("bitcoin:") else (given, None)
    if not address:
        raise refused("address", "give a regtest address or a bitcoin: URI")
    return Order(address, read_amount(amount) if amount or uri_sats is None else uri_sats)


def read_amount(given: str) -> int:
    """Satoshis, as a checkout page shows and copies it: `41,667` satoshis, or with a point BTC."""
    if found := SATS.fullmatch(given):
        sats = int(found[1].replace(",", "")[: MAX_DIGITS + 1])
    elif found := BTC.fullmatch(given):
        sats = _btc_to_sats(found[1])
    else:
        sats = 0
    if not 1 <= sats < 10**MAX_DIGITS:
        raise refused("amount", "give satoshis, such as 41667, or BTC with a point: 0.00041667")
    return sats


def read_count(form: Form, name: str, default: str = "") -> int:
    """A whole number of at least 1."""
    given = field(form, name) or default
    if not (given.isascii() and given.isdigit()) or len(given) > MAX_DIGITS or int(given) < 1:
        raise refused(name, "give a whole number of at least 1")
    return int(given)


def read_usd(form: Form, name: str, most: int) -> Decimal:
    """A price or an amount, from a cent to `most` dollars."""
    usd = _decimal(field(form, name).removeprefix("$").replace(",", ""), name)
    if not Decimal("0.01") <= usd <= most or usd != usd.quantize(Decimal("0.01")):
        raise refused(name, f"give 0.01 to {most:,}, with at most two decimals")
    return usd


def read_switch(form: Form, now: str, states: tuple[str, ...] = ("up", "down")) -> str:
    """Field `state`: one of these; empty flips the switch."""
    given = field(form, "state")
    if given not in ("", *states):
        raise refused("state", f"give {', '.join(states[:-1])} or {states[-1]}")
    return given or ("down" if now == "up" else "up")


def read_flag(form: Form, name: str) -> bool:
    given = field(form, name)
    if given not in ("", "0", "1"):
        raise refused(name, "give 1 or nothing")
    return given == "1"


def _read_uri(uri: str) -> tuple[str, int | None]:
    """Address and satoshis of a BIP21 URI, whose amount is in BTC."""
    parts = urlsplit(uri)
    amounts = parse_qs(parts.query).get("amount", [])
    return unquote(parts.path), _btc_to_sats(amounts[0]) if amounts else None


def _btc_to_sats(text: str) -> int:
    sats = _decimal(text, "amount") * SATS_PER_BTC
    if sats != sats.to_integral_value():
        raise refused("amount", f"{text} BTC is not a whole number of satoshis")
    return int(sats)


def _decimal(text: str, name: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise refused(name, f"{text} is no number") from None
    if not number.is_finite() or abs(number.adjusted()) > MAX_DIGITS:
        raise refused(name, f"{text} is no number in range")
    return number
