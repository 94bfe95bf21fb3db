"""Refunds that a shop's plug-in creates over the Greenfield API of BTCPay Server.

A refund belongs to an order, or has a sum that the shop states (a pull payment).

Source: docs.btcpayserver.org/API/Greenfield/v1, invoice refund and pull payments.
"""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from marshmallow import ValidationError, fields, validate

from btcpay import hooks
from btcpay.invoices.orders import BTC
from btcpay.invoices.quotes import live_price, worth_usd
from btcpay.parts.refunds import actions, queries, sums
from btcpay.parts.refunds.kinds import RESOURCE
from btcpay.parts.refunds.models import Refund
from btcpay.values.errors import ChangeRefused, CommandError, TooMuch
from btcpay.values.money import (
    SATS_PER_BTC,
    Money,
    amount_due,
    checked_currency,
    full_btc_text,
    price_of,
    round_money,
)
from btcpay.values.statuses import RefundStatus
from btcpay.values.texts import MAX_CHARACTERS, one_line
from btcpay.web.body import parse, read_body
from btcpay.web.service import Service
from schemas.any_case import AnyCase, Word, Words
from schemas.requests import MAX_AMOUNT
from storage.models import Invoice

Json = dict[str, Any]
PERMISSION = "cancreatenonapprovedpullpayments"
METHODS = ("BTC", "BTC-CHAIN", "BTC-OnChain", "BTC_OnChain")
TEXTS = ("name", "description")
VARIANTS = ("RateThen", "CurrentRate", "OverpaidAmount", "Fiat", "Custom")
_MONEY: Any = {
    "allow_nan": False,
    "validate": validate.Range(0, MAX_AMOUNT, min_inclusive=False),
}


class _Sum(NamedTuple):
    """A sum in satoshis, and the money from which it was converted (None for bitcoin)."""

    sats: int
    money: Money | None = None

    def money_of(self, part_sats: int) -> Money | None:
        """Returns the value of `part_sats` at the rate at which `sats` are worth `money`.

        Returns None if `money` is None, or if the value rounds to 0.
        """
        if self.money is None or not self.sats:
            return None
        amount, currency = self.money
        share = round_money(amount * part_sats / self.sats, currency)
        if not share:
            return None
        return Money(share, currency)


class _RefundBody(AnyCase):
    name = fields.String(load_default="")
    description = fields.String(load_default="")
    paymentMethod = Word(METHODS, load_default=BTC)
    payoutMethodId = Word(METHODS, load_default=BTC)


class NewRefund(_RefundBody):
    """The body of POST refund. Amounts may be numbers or strings."""

    refundVariant = Word(VARIANTS, required=True)
    customAmount = fields.Decimal(**_MONEY)
    customCurrency = fields.String(load_default=BTC)
    subtractPercentage = fields.Decimal(
        load_default=Decimal(0), allow_nan=False, validate=validate.Range(0, 100)
    )


class NewPullPayment(_RefundBody):
    """The body of POST pull-payments. The amount may be a number or a string."""

    amount = fields.Decimal(required=True, **_MONEY)
    currency = fields.String(load_default=BTC)
    paymentMethods = Words(METHODS)
    autoApproveClaims = fields.Boolean(
        validate=validate.Equal(
            False, error="nobody here signs: the merchant's wallet sends it"
        )
    )


def refund_order(service: Service, store: hooks.PlugInShop, order: Invoice) -> Json:
    """Creates a refund of all of an order's payments, or of a part, and returns the refund.

    Raises ValidationError if the request is invalid, or if the refund is refused.
    """
    body = NewRefund().load(parse(read_body()))
    came_sats = sums.came_sats_of(service.db, order.id)
    made_sats = sums.total_sats_of(sums.refunds_of(service.db, order.id))
    whole = _sum_of_variant(service, order, body, came_sats)
    sats = int(whole.sats * (100 - body["subtractPercentage"]) / 100)
    subtracted_sats = None
    # A shop repeats a request that has timed out. So earlier refunds are subtracted,
    # unless the request states the sum itself.
    if body["refundVariant"] != "Custom":
        sats = max(0, sats - made_sats)
        subtracted_sats = made_sats
    new_refund = actions.RefundRequest(
        merchant_id=store.merchant_id,
        invoice_id=order.id,
        amount_sats=sats,
        subtracted_sats=subtracted_sats,
        asked=whole.money_of(sats),
    )
    return _create_refund(service, store, body, new_refund, "refundVariant")


def _sum_of_variant(
    service: Service,
    order: Invoice,
    body: Json,
    came_sats: int,
) -> _Sum:
    """Returns the sum of the refund by the rule (`refundVariant`) that the shop has chosen."""
    match body["refundVariant"]:
        case "RateThen":
            return _Sum(came_sats)
        case "OverpaidAmount":
            return _Sum(max(0, came_sats - order.amount_sats))
        case "Custom":
            if "customAmount" not in body:
                raise ValidationError("is required", "customAmount")
            return _sum_of(service, body["customAmount"], body["customCurrency"])
        case _:  # CurrentRate, Fiat
            return _sum_at_current_price(service, order, came_sats)


def _sum_at_current_price(service: Service, order: Invoice, came_sats: int) -> _Sum:
    """Returns the sum that is worth now what the received sum was worth then.

    The received sum is converted to money at the order's price, and the money to
    satoshis at the current price.
    """
    currency = amount_due(order).currency
    worth_then = Decimal(came_sats) * price_of(order) / SATS_PER_BTC
    price_now = live_price(service.prices, service.now(), currency).in_currency
    return _Sum(sums.sats_at(worth_then, price_now), Money(worth_then, currency))


def create_pull_payment(service: Service, store: hooks.PlugInShop) -> Json:
    """Creates a refund without an invoice, whose sum the shop states.

    Returns the refund in the form of Greenfield's pull payment. Raises ValidationError
    if the request is invalid, or if the refund is refused.
    """
    body = NewPullPayment().load(parse(read_body()))
    whole = _sum_of(service, body["amount"], body["currency"])
    new_refund = actions.RefundRequest(
        merchant_id=store.merchant_id,
        invoice_id=None,
        amount_sats=whole.sats,
        asked=whole.money_of(whole.sats),
    )
    return _create_refund(service, store, body, new_refund, "amount")


def _sum_of(service: Service, amount: Decimal, currency: str) -> _Sum:
    """Converts the amount to satoshis at the current exchange rate, rounded down.

    Raises ValidationError if the currency is unknown, or if the amount is above the
    maximum of an order.
    """
    code = currency.upper()
    try:
        if code == "SATS":
            code = BTC
            amount = amount / SATS_PER_BTC
        if code != BTC:
            code = checked_currency(code)
        price = live_price(service.prices, service.now(), code)
        worth_usd(amount, price)  # only for its check of the maximum
    except (CommandError, TooMuch) as error:
        raise ValidationError(str(error), "currency") from None
    sats = sums.sats_at(amount, price.in_currency)
    if code == BTC:
        return _Sum(sats)
    return _Sum(sats, Money(amount, code))


def _create_refund(
    service: Service,
    store: hooks.PlugInShop,
    body: Json,
    new_refund: actions.RefundRequest,
    field: str,
) -> Json:
    """Creates the refund with the shop's texts, and returns it.

    If it is refused, raises a ValidationError about the request's `field`.
    """
    texts = {
        name: one_line(body[name], MAX_CHARACTERS["reason"]) or "" for name in TEXTS
    }
    request = new_refund._replace(
        reason=texts["description"] or texts["name"] or None,
        store_id=store.id,
        shop_texts=json.dumps(texts),
    )
    try:
        row = actions.make(service.db, service.settings, request, service.now())
    except ChangeRefused as refusal:
        raise ValidationError(str(refusal), field) from None
    return show(service, store, row)


def show(service: Service, _store: hooks.PlugInShop, row: Refund) -> Json:
    """Returns the refund in the form of Greenfield's pull payment."""
    texts = json.loads(row.shop_texts or "{}")
    return {
        "id": row.id,
        "viewLink": RESOURCE.url_of(service.settings.base_url, row.id),
        "name": texts.get("name", ""),
        "description": texts.get("description", ""),
        "currency": BTC,
        "amount": full_btc_text(row.amount_sats),
        "period": None,
        "archived": row.status == RefundStatus.CANCELED,
        "autoApproveClaims": False,
        "startsAt": row.created_ms // 1000,
    }


# By the prefix of an id in a path: the query for the row with that id.
ROW_BY_PREFIX = {"rfd": queries.OF_STORE}
# By method and path (below the API's root): the required permission, and the view.
OPERATIONS: dict[tuple[str, str], tuple[str, Callable[..., Any]]] = {
    ("POST", "/stores/<store>/invoices/<inv>/refund"): (PERMISSION, refund_order),
    ("POST", "/stores/<store>/pull-payments"): (PERMISSION, create_pull_payment),
    ("GET", "/pull-payments/<rfd>"): (PERMISSION, show),
}


HOOK = hooks.PlugInOperations(operations=OPERATIONS, rows=ROW_BY_PREFIX)
