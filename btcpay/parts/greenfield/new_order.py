"""Converts a shop's request for an invoice to the order from which an invoice is created."""

import json
from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from marshmallow import ValidationError

from btcpay.invoices.orders import BTC, Order
from btcpay.merchants.branding import INVOICE
from btcpay.parts.greenfield import queries
from btcpay.parts.greenfield.bodies import SMALLEST, SPEEDS, errors_about
from btcpay.parts.greenfield.keys import own_url
from btcpay.values.money import (
    MAX_MONEY_BTC,
    MAX_MONEY_SATS,
    Money,
    checked_currency,
    round_money,
    unit_of,
)
from btcpay.values.texts import MAX_CHARACTERS, one_line
from schemas.any_case import value_of
from schemas.requests import MAX_AMOUNT

SATS = "SATS"
# The maximum amount and the smallest unit, for amounts in bitcoin and in satoshis.
_IN_BITCOIN = {BTC: (MAX_MONEY_BTC, SMALLEST), SATS: (MAX_MONEY_SATS, Decimal(1))}
# Names of the payment method, in lower case.
BITCOIN = {"btc", "btc-chain", "btc-onchain", "btc_onchain"}
# The maximum number of characters of an order number, since an entry of a PostgreSQL
# index has at most 2,704 bytes.
MAX_NUMBER = 500
_MAX_DESCRIPTION = 500
_MAX_EMAIL = 320
# Fields of the checkout that the invoice stores for its page.
_PAGE_FIELDS = ("redirectURL", "redirectAutomatically", "defaultLanguage")


def order_id_of(metadata: dict[str, Any]) -> str | None:
    """Returns the order number in the metadata, cut to MAX_NUMBER characters.

    Returns None if the metadata have no number or text as `orderId`. Raises
    ValidationError if the order number contains U+0000.
    """
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
    fields: dict[str, Any],
    metadata_text: str | None,
    usual_min: int,
) -> Order:
    """Returns the order for the loaded fields of a request.

    `metadata_text` are the request's metadata as JSON. `usual_min` is the number of
    minutes after which the invoice expires if the request states none. Raises
    ValidationError if a field is invalid.
    """
    code = str(fields.get("currency", store.currency)).upper()
    money = _money(code, fields["amount"])
    checkout = fields["checkout"]
    metadata = fields["metadata"]
    order_id = order_id_of(metadata)
    return_url = _return_url(store, checkout, order_id)
    _require_bitcoin(checkout.get("paymentMethods", ()))
    tolerance_percent = checkout.get("paymentTolerance")
    if tolerance_percent is not None:
        tolerance_percent = str(tolerance_percent)
    details = {
        "description": one_line(value_of(metadata, "itemDesc"), _MAX_DESCRIPTION),
        "customer_email": _email(metadata),
        "reference": one_line(order_id, MAX_CHARACTERS["reference"]),
        "return_url": return_url,
        "confirmations": SPEEDS.get(checkout.get("speedPolicy")),
        "tolerance_percent": tolerance_percent,
        "store_id": store.id,
        "order_id": order_id,
        "shop_order": _shop_order(code, fields["amount"], checkout),
        "metadata": metadata_text,
    }
    return Order(
        merchant_id=store.merchant_id,
        amount=money.amount,
        life=timedelta(minutes=checkout.get("expirationMinutes", usual_min)),
        details=details,
        currency=money.currency,
    )


def _shop_order(code: str, amount: Decimal, checkout: dict[str, Any]) -> str:
    """Returns, as JSON, the fields that responses and the invoice's page show again."""
    shop_order = {"amount": f"{amount:f}", "currency": code}
    for name in _PAGE_FIELDS:
        if name in checkout:
            shop_order[name] = checkout[name]
    return json.dumps(shop_order)


def _return_url(
    store: queries.OfMerchant,
    checkout: dict[str, Any],
    order_id: str | None,
) -> str | None:
    """Returns the URL that leads back to the shop; None if the request has none.

    The placeholders in the URL are replaced. Raises ValidationError if the URL is not
    within the shop.
    """
    url = checkout.get("redirectURL", "").replace("{InvoiceId}", INVOICE)
    url = url.replace("{OrderId}", quote(order_id or "", safe=""))
    if not url:
        return None
    with errors_about("checkout.redirectURL"):
        return own_url(url, store.shop_url) or None


def _require_bitcoin(methods: Iterable[str]) -> None:
    """Raises ValidationError if there are payment methods, and bitcoin is not among them."""
    names = {method.lower() for method in methods}
    if names and names.isdisjoint(BITCOIN):
        raise ValidationError(
            "only BTC on the chain is possible here", "checkout.paymentMethods"
        )


def _email(metadata: dict[str, Any]) -> str | None:
    """Returns the buyer's e-mail address; None if it has several lines or is too long."""
    email: str | None = value_of(metadata, "buyerEmail")
    if one_line(email, _MAX_EMAIL) != email:
        return None
    return email


def _money(code: str, amount: Decimal) -> Money:
    """Returns the amount with its currency. Satoshis are converted to bitcoin.

    Raises ValidationError if the currency is unknown or the amount is out of range.
    """
    if code in _IN_BITCOIN:
        most, unit = _IN_BITCOIN[code]
        if amount % unit:
            raise ValidationError("has a part of a satoshi", "amount")
    else:
        with errors_about("currency"):
            checked_currency(code)
        most = MAX_AMOUNT
        unit = unit_of(code)
        amount = round_money(amount, code)
    if not 0 < amount <= most:
        raise ValidationError(f"is not from {unit:f} to {most:,} {code}", "amount")
    if code == SATS:
        return Money(amount * SMALLEST, BTC)
    return Money(amount, code)
