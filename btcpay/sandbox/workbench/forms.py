"""What people type into the page's fields: amounts, addresses, BIP21 URIs, prices, switches."""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from btcpay.sandbox.errors import BadRequest

SATS_PER_BTC = 100_000_000
MAX_DIGITS = 16  # 21 million BTC in satoshis
MAX_PRICE_USD = Decimal(1_000_000_000)
MAX_INVOICE_USD = 1_000_000

# What the page calls each field, for messages.
LABELS = {
    "address": "Address",
    "invoice": "Invoice",
    "amount": "Amount",
    "blocks": "Blocks",
    "txid": "Waiting payment",
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


def refused(name: str, why: str) -> BadRequest:
    """What is wrong with a field, by the label that it has on the page."""
    return BadRequest(f"{LABELS[name]}: {why}")


class Order(NamedTuple):
    """Whom to pay, and how many satoshis."""

    address: str
    amount_sats: int


def read_order(form: Form) -> Order:
    """Fields `address` (or a BIP21 URI) and `amount`, which goes before the URI's.

    Raises BadRequest, naming the field.
    """
    given = form.get("address", "").strip()
    if given.lower().startswith(("http://", "https://")):
        raise refused("address", "that is a page; paste the address or the bitcoin: URI it shows")
    if given.startswith(("inv_", "lnk_")):
        raise refused("address", "that is an id; paste the invoice's deposit_address")
    address, uri_sats = _read_uri(given) if given.lower().startswith("bitcoin:") else (given, None)
    if not address:
        raise refused("address", "give a regtest address or a bitcoin: URI")
    amount = form.get("amount", "").strip()
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


def _read_uri(uri: str) -> tuple[str, int | None]:
    """Address and satoshis of a BIP21 URI, whose amount is in BTC."""
    parts = urlsplit(uri)
    amounts = parse_qs(parts.query).get("amount", [])
    return unquote(parts.path), _btc_to_sats(amounts[0]) if amounts else None


def _btc_to_sats(text: str) -> int:
    sats = _decimal(text, "amount") * SATS_PER_BTC
    if sats != sats.to_integral_value():
        raise refused("amount", f"{text} BTC is no whole number of satoshis")
    return int(sats)


def read_count(form: Form, name: str, default: str = "") -> int:
    """A whole number of at least 1. Raises BadRequest, naming the field."""
    given = form.get(name, "").strip() or default
    if not (given.isascii() and given.isdigit()) or len(given) > MAX_DIGITS or int(given) < 1:
        raise refused(name, "give a whole number of at least 1")
    return int(given)


def read_price(form: Form) -> Decimal | None:
    """Field `usd`, to the cent, None when it is empty. Raises BadRequest."""
    return _read_usd(form, "usd", MAX_PRICE_USD) if form.get("usd", "").strip() else None


def read_invoice_usd(form: Form) -> Decimal:
    """Field `amount_usd`, to the cent. Raises BadRequest."""
    return _read_usd(form, "amount_usd", Decimal(MAX_INVOICE_USD))


def _read_usd(form: Form, name: str, most: Decimal) -> Decimal:
    usd = _decimal(form.get(name, "").strip().removeprefix("$").replace(",", ""), name)
    if not Decimal("0.01") <= usd <= most or usd != usd.quantize(Decimal("0.01")):
        raise refused(name, f"give 0.01 to {most:,}, with at most two decimals")
    return usd


def read_switch(form: Form, now: str, states: tuple[str, ...] = ("up", "down")) -> str:
    """Field `state`: one of these; empty turns the switch over. Raises BadRequest."""
    given = form.get("state", "").strip()
    if given not in ("", *states):
        raise refused("state", f"give {', '.join(states[:-1])} or {states[-1]}")
    return given or ("down" if now == "up" else "up")


def read_flag(form: Form, name: str) -> bool:
    """A checkbox: absent, empty, 0, no and off are no; 1, yes and on are yes. Raises BadRequest."""
    given = form.get(name, "").strip().lower()
    if given not in ("", "0", "no", "off", "false", "1", "yes", "on", "true"):
        raise refused(name, "give yes or no")
    return given in ("1", "yes", "on", "true")


def _decimal(text: str, name: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise refused(name, f"{text} is no number") from None
    if not number.is_finite() or abs(number.adjusted()) > MAX_DIGITS:
        raise refused(name, f"{text} is no number in range")
    return number
