"""What a plug-in asks for: a body as it came and as it was loaded, and the invoice of it."""

import json
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import orjson
from marshmallow import Schema, ValidationError

from btcpay.greenfield.errors import Unfit
from btcpay.invoices import create
from btcpay.merchants.branding import INVOICE, MAX_REFERENCE_CHARACTERS, checked_url
from btcpay.merchants.shops import is_within
from btcpay.values.currencies import checked_currency, rounded
from btcpay.values.errors import CommandError
from btcpay.values.money import MAX_MONEY_BTC, SATS_PER_BTC
from btcpay.web.body import parse, read_body
from schemas import greenfield as accepts
from schemas.requests import MAX_AMOUNT
from storage.database import Row

SATS = "SATS"
_MAX_DESCRIPTION, _MAX_EMAIL = 500, 320


def body_of(schema: Schema) -> tuple[dict[str, Any], dict[str, Any]]:
    """The body, as it can be given back and as it was loaded. Raises Unfit."""
    body = read_body()
    value = parse(body)
    if not isinstance(value, dict):
        raise Unfit(("", "the body must be a JSON object"))
    try:
        return orjson.loads(body), schema.load(value)
    except orjson.JSONDecodeError as error:
        raise Unfit(("", f"the body cannot be kept: {error}")) from None
    except ValidationError as error:
        raise Unfit(*accepts.mistakes(error)) from None


def metadata_of(sent: dict[str, Any]) -> str | None:
    """As it was sent; a whole number beyond 64 bits is the nearest that a double holds."""
    metadata = sent.get("metadata")
    return orjson.dumps(metadata).decode() if metadata else None


def kept_of(checkout: dict[str, Any]) -> str:
    names = ("redirectURL", "redirectAutomatically", "defaultLanguage")
    return json.dumps({name: checkout[name] for name in names if name in checkout})


def order_id_of(asked: dict[str, Any]) -> str | None:
    number = asked.get("metadata", {}).get("orderId")
    return str(number)[: accepts.MAX_NUMBER] if isinstance(number, str | Decimal) else None


def amount_of(asked: dict[str, Any], default: str) -> tuple[str, Decimal]:
    """The currency and the amount that are asked for; satoshis are bitcoin. Raises Unfit."""
    code, amount = asked.get("currency", default).upper(), asked["amount"]
    if code in (create.BTC, SATS):
        btc = amount / SATS_PER_BTC if code == SATS else amount
        if btc > MAX_MONEY_BTC:
            raise Unfit(("amount", "is more bitcoin than can exist"))
        if amount != amount.quantize(Decimal(1) if code == SATS else accepts.SMALLEST):
            raise Unfit(("amount", "has a part of a satoshi"))
        return create.BTC, btc
    try:
        currency = checked_currency(code)
    except CommandError as error:
        raise Unfit(("currency", str(error))) from None
    if amount > MAX_AMOUNT:
        raise Unfit(("amount", f"is more than {MAX_AMOUNT:,}"))
    amount = rounded(amount, currency)
    if not amount:
        raise Unfit(("amount", f"is less than the smallest unit of {currency}"))
    return currency, amount


def details_of(asked: dict[str, Any], checkout: dict[str, Any], store: Row) -> dict[str, Any]:
    """The columns of its invoice. Raises Unfit."""
    methods = checkout.get("paymentMethods")
    if methods and not set(methods) & set(accepts.BITCOIN):
        raise Unfit(("checkout.paymentMethods", "only BTC on the chain is possible here"))
    said = asked.get("metadata", {})
    email, description = (said.get(name) for name in ("buyerEmail", "itemDesc"))
    tolerance = checkout.get("paymentTolerance")
    speed = checkout.get("speedPolicy")
    return {
        "description": _line(description, _MAX_DESCRIPTION),
        "customer_email": email if _line(email, _MAX_EMAIL) == email else None,
        "reference": _line(order_id_of(asked), MAX_REFERENCE_CHARACTERS),
        "return_url": _way_back(checkout.get("redirectURL"), order_id_of(asked), store),
        "confirmations": accepts.SPEEDS[speed] if speed else None,
        "tolerance_percent": None if tolerance is None else f"{tolerance:f}",
        "store_id": store["id"],
    }


def _line(value: Any, most: int) -> str | None:
    """What a page may show of a text that anybody may have sent; nothing of what is no text."""
    if not isinstance(value, str):
        return None
    line = "".join(sign if sign.isprintable() else " " for sign in value).strip()[:most].strip()
    return line or None


def _way_back(url: str | None, order_id: str | None, store: Row) -> str | None:
    """The shop's own address, with our place for the id. Raises Unfit for anybody else's."""
    if not url:
        return None
    try:
        found = checked_url(
            url.replace("{InvoiceId}", INVOICE).replace("{OrderId}", quote(order_id or "", safe=""))
        )
    except CommandError as error:
        raise Unfit(("checkout.redirectURL", str(error))) from None
    if not is_within(found.replace(INVOICE, ""), store["shop_url"]):
        raise Unfit(("checkout.redirectURL", f"is not within {store['shop_url']}"))
    return found
