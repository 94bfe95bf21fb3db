"""Texts that people type into the page's fields: amounts, addresses, BIP21 URIs, prices, switches.

Every reader raises BadRequest, naming the field.
"""

import re
from decimal import Decimal
from urllib.parse import parse_qs, unquote, urlsplit

from flask import request

from btcpay.sandbox.errors import BadRequest
from btcpay.values.money import SATS_PER_BTC

SATS = re.compile(
    r"[0-9]{1,16}|[0-9]{1,3}(,[0-9]{3}){1,5}"
)  # 21 million BTC have 16 digits
BTC = re.compile(r"(?=\.?[0-9])[0-9]{0,8}(\.[0-9]{0,16})?")
USD = re.compile(r"\$?(?=\.?[0-9])[0-9,]{0,16}(\.[0-9]{0,2})?")
LONGEST_FIELD = 2_000  # characters
WHOLE = re.compile("[1-9][0-9]{0,15}")


def refused(name: str, why: str) -> BadRequest:
    """`amount_usd` reads as "Amount usd"."""
    return BadRequest(f"{name.replace('_', ' ').capitalize()}: {why}")


def field(name: str) -> str:
    """The field without the spaces around it; empty where there is none."""
    text = request.form.get(name, "")
    if (
        len(text) > LONGEST_FIELD
    ):  # before urlsplit normalises it, which could take seconds
        raise refused(name, f"more than {LONGEST_FIELD} characters")
    return text.strip()


def read_order() -> tuple[str, int]:
    """Address and satoshis: fields `address` (or a BIP21 URI) and `amount`, if not the URI's."""
    given = field("address")
    amount = field("amount")
    address = given
    btc = ""
    if given.lower().startswith("bitcoin:"):
        uri = urlsplit(given)
        address = unquote(uri.path)
        (btc, *_) = parse_qs(uri.query).get("amount", [""])
    if not address:
        raise refused("address", "give a regtest address or a bitcoin: URI")
    return address, _btc_to_sats(btc) if btc and not amount else read_amount(amount)


def read_amount(given: str) -> int:
    """Satoshis, as a checkout page shows and copies it: `41,667` satoshis, or with a point BTC."""
    if "." in given:
        return _btc_to_sats(given)
    sats = int(given.replace(",", "")) if SATS.fullmatch(given) else 0
    if not sats:
        raise refused(
            "amount", "give satoshis, such as 41667, or BTC with a point: 0.00041667"
        )
    return sats


def read_count(name: str) -> int:
    """A whole number of at least 1, which an empty field means."""
    given = field(name) or "1"
    if not WHOLE.fullmatch(given):
        raise refused(name, "give a whole number of at least 1")
    return int(given)


def read_usd(name: str, most: int) -> Decimal:
    """A price or an amount, from a cent to `most` dollars."""
    given = field(name)
    usd = Decimal(given.strip("$").replace(",", "") if USD.fullmatch(given) else 0)
    if not 0 < usd <= most:
        raise refused(name, f"give 0.01 to {most:,}, with at most two decimals")
    return usd


def read_state(*states: str) -> str:
    """Field `state`: one of these."""
    if (given := field("state")) not in states:
        raise refused("state", f"give {', '.join(states[:-1])} or {states[-1]}")
    return given


def read_flag(name: str) -> bool:
    given = field(name)
    if given not in ("", "0", "1"):
        raise refused(name, "give 1 or nothing")
    return given == "1"


def _btc_to_sats(text: str) -> int:
    sats = Decimal(text) * SATS_PER_BTC if BTC.fullmatch(text) else Decimal()
    if sats < 1 or sats % 1:
        raise refused("amount", f"{text} BTC is not a whole number of satoshis")
    return int(sats)
