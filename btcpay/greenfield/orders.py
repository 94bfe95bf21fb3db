"""A shop's orders: made, listed, shown, marked."""

from datetime import timedelta

from flask import Response, request
from marshmallow import ValidationError

from btcpay.greenfield import shown
from btcpay.greenfield.asked import (
    amount_of,
    body_of,
    details_of,
    kept_of,
    metadata_of,
    order_id_of,
)
from btcpay.greenfield.errors import Unfit
from btcpay.greenfield.meanings import OURS, meaning_of
from btcpay.invoices import by_hand, create
from btcpay.invoices.status import rules_for
from btcpay.values.errors import NotFound, Refused, TooMuch
from btcpay.values.times import to_ms
from btcpay.web.application import answer
from btcpay.web.service import Service
from schemas import greenfield as accepts
from storage.database import Row
from storage.queries import payments, stores

SEARCHED = 1000  # of the newest, where a status of theirs is only a part of one of ours


def create_order(service: Service, store: Row) -> Response:
    """An invoice for what the shop asks, at the price of a bitcoin in the order's own currency."""
    sent, asked = body_of(accepts.NewOrder())
    currency, amount = amount_of(asked, store["currency"])
    checkout = asked.get("checkout", {})
    order = create.Order(
        store["merchant_id"],
        amount,
        timedelta(
            minutes=checkout.get("expirationMinutes", service.settings.link_invoice_expiry_min)
        ),
        details_of(asked, checkout, store) | {"metadata": metadata_of(sent)},
        currency,
    )
    price = create.live_price(
        service.db, service.prices, store["merchant_id"], service.now(), currency
    )
    kept = {
        "amount": f"{asked['amount']:f}",
        "currency": str(asked.get("currency", store["currency"])).upper(),
        "order_id": order_id_of(asked),
        "checkout": kept_of(checkout),
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
        query, more = stores.ORDERS_OF_NUMBER, {"order_id": wanted["orderId"][: accepts.MAX_NUMBER]}
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
    sent, asked = body_of(accepts.MetadataAnew())
    _found(service, store, id)
    with service.db.write():
        service.db.run(stores.SET_METADATA, invoice_id=id, metadata=metadata_of(sent))
        service.db.run(stores.SET_NUMBER, invoice_id=id, order_id=order_id_of(asked))
    return _shown(service, store, id)


def archive_order(service: Service, store: Row, id: str) -> Response:
    """Hidden from the list; its address is watched for ever all the same."""
    _found(service, store, id)
    with service.db.write():
        service.db.run(stores.ARCHIVE, invoice_id=id, at=to_ms(service.now()))
    return answer({})


def mark_order(service: Service, store: Row, id: str) -> Response:
    """Invalid cancels, by the rules of a cancellation. What came is a human's word: not Settled."""
    _, asked = body_of(accepts.Word())
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
