"""A shop's orders: made, listed, shown, marked."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import orjson
from flask import Response, request
from marshmallow import Schema, ValidationError

from btcpay.greenfield import shown
from btcpay.greenfield.errors import Unfit
from btcpay.greenfield.meanings import OURS, meaning_of
from btcpay.invoices import by_hand, create
from btcpay.invoices.status import rules_for
from btcpay.merchants.branding import INVOICE, MAX_REFERENCE_CHARACTERS, checked_url
from btcpay.merchants.shops import is_within
from btcpay.values.currencies import checked_currency, rounded
from btcpay.values.errors import CommandError, NotFound, Refused, TooMuch
from btcpay.values.money import SATS_PER_BTC
from btcpay.values.times import to_ms
from btcpay.web.application import answer
from btcpay.web.body import parse, read_body
from btcpay.web.service import Service
from schemas import greenfield as accepts
from storage.database import Row
from storage.queries import payments, stores

SATS = "SATS"
SEARCHED = 1000  # of the newest, where a status of theirs is only a part of one of ours
_MAX_DESCRIPTION, _MAX_EMAIL = 500, 320


def create_order(service: Service, store: Row) -> Response:
    """An invoice for what the shop asks, at the price of a bitcoin in the order's own currency."""
    body, asked = _body(accepts.NewOrder())
    currency, amount = _amount(asked, store["currency"])
    checkout = asked.get("checkout", {})
    order = create.Order(
        store["merchant_id"],
        amount,
        timedelta(
            minutes=checkout.get("expirationMinutes", service.settings.link_invoice_expiry_min)
        ),
        _details(asked, checkout, store) | {"metadata": _metadata(body)},
        currency,
    )
    price = create.live_price(
        service.db, service.prices, store["merchant_id"], service.now(), currency
    )
    kept = {
        "amount": str(asked["amount"]),
        "currency": str(asked.get("currency", store["currency"])).upper(),
        "order_id": _order_id(asked),
        "checkout": _kept(checkout),
    }

    def make() -> str:
        now = service.now()
        row = create.new_invoice(service.db, service.settings.network, now, order, price)
        service.db.run(stores.ADD_ORDER, invoice_id=row["id"], **kept)
        return str(row["id"])

    try:
        return _shown(service, store, service.db.written(make))
    except TooMuch as error:
        raise Unfit(("amount", str(error))) from None


def list_orders(service: Service, store: Row) -> Response:
    """The newest ones that are not archived, of one number or one status."""
    try:
        wanted = accepts.Wanted().load(request.args.to_dict())
    except ValidationError as error:
        raise Unfit(*accepts.mistakes(error)) from None
    status, page = wanted.get("status"), {"limit": wanted["take"], "offset": wanted["skip"]}
    if "orderId" in wanted:
        query, more = stores.ORDERS_OF_NUMBER, {"order_id": wanted["orderId"]}
    elif status:
        query, more = stores.ORDERS_OF_STATUS, {"status": OURS[status]}
    else:
        query, more = stores.ORDERS, {}
    picks = status is not None and (OURS[status] == "open" or "orderId" in wanted)
    if picks:  # what came says which of two an open one is
        page = {"limit": SEARCHED, "offset": 0}
    rows = service.db.rows(query, store_id=store["id"], **more, **page)
    if picks:
        rows = [row for row in rows if _status(service, row) == status]
        rows = rows[wanted["skip"] :][: wanted["take"]]
    return answer([shown.order(row, service.settings) for row in rows])


def get_order(service: Service, store: Row, id: str) -> Response:
    return _shown(service, store, id)


def set_metadata(service: Service, store: Row, id: str) -> Response:
    """Its metadata anew, and its number with them."""
    body, asked = _body(accepts.MetadataAnew())
    _found(service, store, id)
    with service.db.write():
        service.db.run(stores.SET_METADATA, invoice_id=id, metadata=_metadata(body))
        service.db.run(stores.SET_NUMBER, invoice_id=id, order_id=_order_id(asked))
    return _shown(service, store, id)


def archive_order(service: Service, store: Row, id: str) -> Response:
    """Hidden from the list; its address is watched for ever all the same."""
    _found(service, store, id)
    with service.db.write():
        service.db.run(stores.ARCHIVE, invoice_id=id, at=to_ms(service.now()))
    return answer({})


def mark_order(service: Service, store: Row, id: str) -> Response:
    """Invalid cancels, by the rules of a cancellation. What came is a human's word: not Settled."""
    _, asked = _body(accepts.Word())
    _found(service, store, id)
    if asked["status"].lower() == "settled":
        raise Unfit(("status", "only the merchant accepts what came: `btcpay invoice settle`"))
    try:
        by_hand.cancel(service.db, service.settings, id, service.now(), where="by the shop")
    except Refused as error:
        raise Unfit(("status", str(error))) from None
    return _shown(service, store, id)


def order_methods(service: Service, store: Row, id: str) -> Response:
    """How it is paid, and what came."""
    row = _found(service, store, id)
    outputs = service.db.rows(payments.ALIVE, invoice_id=id)
    return answer([shown.method(row, outputs, service.settings)])


def _found(service: Service, store: Row, id: str) -> Row:
    row = service.db.row(stores.ORDER, id=id, store_id=store["id"])
    if row is None:
        raise NotFound("there is no invoice with this id")
    return row


def _shown(service: Service, store: Row, id: str) -> Response:
    return answer(shown.order(_found(service, store, id), service.settings))


def _status(service: Service, row: Row) -> str:
    return meaning_of(row, rules_for(service.settings, row)).status


def _body(schema: Schema) -> tuple[bytes, dict[str, Any]]:
    """The body, as it came and as it was loaded. Raises Unfit."""
    body = read_body()
    value = parse(body)
    if not isinstance(value, dict):
        raise Unfit(("", "the body must be a JSON object"))
    try:
        orjson.loads(body)  # what it cannot read, nobody could be answered with
    except orjson.JSONDecodeError as error:
        raise Unfit(("", f"the body cannot be kept: {error}")) from None
    try:
        return body, schema.load(value)
    except ValidationError as error:
        raise Unfit(*accepts.mistakes(error)) from None


def _metadata(body: bytes) -> str | None:
    """As it was sent; a whole number beyond 64 bits is the nearest that a double holds."""
    metadata = orjson.loads(body).get("metadata")
    return orjson.dumps(metadata).decode() if metadata else None


def _kept(checkout: dict[str, Any]) -> str:
    names = ("redirectURL", "redirectAutomatically", "defaultLanguage")
    return json.dumps({name: checkout[name] for name in names if name in checkout})


def _order_id(asked: dict[str, Any]) -> str | None:
    number = asked.get("metadata", {}).get("orderId")
    return None if number is None else str(number)


def _amount(asked: dict[str, Any], default: str) -> tuple[str, Decimal]:
    """The currency and the amount that are asked for; satoshis are bitcoin. Raises Unfit."""
    code, amount = asked.get("currency", default).upper(), asked["amount"]
    if code in (create.BTC, SATS):
        btc = amount / SATS_PER_BTC if code == SATS else amount
        if btc * SATS_PER_BTC != (btc * SATS_PER_BTC).to_integral_value():
            raise Unfit(("amount", "has a part of a satoshi"))
        return create.BTC, btc
    try:
        currency = checked_currency(code)
    except CommandError as error:
        raise Unfit(("currency", str(error))) from None
    amount = rounded(amount, currency)
    if not amount:
        raise Unfit(("amount", f"is less than the smallest unit of {currency}"))
    return currency, amount


def _details(asked: dict[str, Any], checkout: dict[str, Any], store: Row) -> dict[str, Any]:
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
        "reference": _line(_order_id(asked), MAX_REFERENCE_CHARACTERS),
        "return_url": _way_back(checkout.get("redirectURL"), _order_id(asked), store),
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
            url.replace("{InvoiceId}", INVOICE).replace("{OrderId}", order_id or "")
        )
    except CommandError as error:
        raise Unfit(("checkout.redirectURL", str(error))) from None
    if not is_within(found.replace(INVOICE, ""), store["shop_url"]):
        raise Unfit(("checkout.redirectURL", f"is not within {store['shop_url']}"))
    return found
