"""A shop's orders: made, listed, shown, marked. Times are unix seconds, amounts texts."""

import json
from typing import Any

from flask import Response, request
from marshmallow import ValidationError
from orjson import Fragment

from btcpay.greenfield import asked
from btcpay.invoices import by_hand
from btcpay.invoices.create import BTC, live_price, new_invoice
from btcpay.invoices.status import rules_for
from btcpay.notify.greenfield_words import OURS, meaning_of
from btcpay.settlement.decide import missing_sats
from btcpay.values.currencies import price_of
from btcpay.values.errors import NotFound
from btcpay.values.money import btc_shown
from btcpay.values.times import to_ms
from btcpay.web.application import answer
from btcpay.web.service import Service
from storage.database import Row
from storage.queries import payments, stores

SEARCHED = 1000  # of the newest, where a status of theirs is only a part of one of ours
MONITORED_S = 7 * 24 * 3600  # after its end an invoice is watched for ever; plug-ins want a number


def create_order(service: Service, store: Row) -> Response:
    """An invoice for what the shop asks, at the price of a bitcoin in the order's own currency."""
    db, settings = service.db, service.settings
    order = asked.order_of(
        store, *asked.body_of(asked.NewOrder()), settings.link_invoice_expiry_min
    )
    price = live_price(db, service.prices, store["merchant_id"], service.now(), order.currency)

    def make() -> str:
        return str(new_invoice(db, settings.network, service.now(), order, price)["id"])

    return get_order(service, store, asked.checked("amount", db.written, make))


def list_orders(service: Service, store: Row) -> Response:
    """The newest ones that are not archived, of one number or one status."""
    wanted = asked.Wanted().load(request.args.to_dict())
    status, take, skip = wanted.get("status"), wanted["take"], wanted["skip"]
    query, more = stores.ORDERS, {}
    if "orderId" in wanted:
        query, more = stores.ORDERS_OF_NUMBER, {"order_id": wanted["orderId"][: asked.MAX_NUMBER]}
    elif status:
        query, more = stores.ORDERS_OF_STATUS, {"status": OURS[status]}
    # What came says which of two an open one is.
    picks = status is not None and (OURS[status] == "open" or "orderId" in wanted)
    page = {"limit": SEARCHED, "offset": 0} if picks else {"limit": take, "offset": skip}
    rows = service.db.rows(query, store_id=store["id"], **more, **page)
    found = [_shown(service, row) for row in rows]
    if picks:
        found = [one for one in found if one["status"] == status][skip:][:take]
    return answer(found)


def get_order(service: Service, store: Row, id: str) -> Response:
    return answer(_shown(service, _found(service, store, id)))


def set_metadata(service: Service, store: Row, id: str) -> Response:
    """Its metadata anew, and its number with them."""
    said, metadata = asked.body_of(asked.NewMetadata())
    _found(service, store, id)
    anew = {"metadata": metadata, "order_id": asked.order_id_of(said["metadata"])}
    service.db.run(stores.SET_METADATA, store_id=store["id"], id=id, **anew)
    return get_order(service, store, id)


def archive_order(service: Service, store: Row, id: str) -> Response:
    """Hidden from the list; its address is watched for ever all the same."""
    _found(service, store, id)
    at = to_ms(service.now())
    service.db.run(stores.ARCHIVE, store_id=store["id"], id=id, archived_at=at)
    return answer({})


def mark_order(service: Service, store: Row, id: str) -> Response:
    """Invalid cancels, by the rules of a cancellation. What came is a human's word: not Settled."""
    said, _ = asked.body_of(asked.Mark())
    _found(service, store, id)
    if said["status"].lower() == "settled":
        only = "only the merchant accepts what came: `btcpay invoice settle`"
        raise ValidationError(only, "status")
    at, by = service.now(), "by the shop"
    asked.checked("status", by_hand.cancel, service.db, service.settings, id, at, False, by)
    return get_order(service, store, id)


def order_methods(service: Service, store: Row, id: str) -> Response:
    """How it is paid, and what came."""
    row = _found(service, store, id)
    percent = rules_for(service.settings, row).tolerance_percent
    outputs = service.db.rows(payments.ALIVE, invoice_id=id)
    came = btc_shown(sum(output["amount_sats"] for output in outputs))
    due = btc_shown(missing_sats(row["status"], row["amount_sats"], row["received_sats"], percent))
    is_in_btc = json.loads(row["shop_order"])["currency"] in (BTC, asked.SATS)
    address = row["deposit_address"]
    method = {
        "paymentMethod": "BTC",
        "paymentMethodId": "BTC-CHAIN",
        "cryptoCode": "BTC",
        "currency": "BTC",
        "activated": True,
        "destination": address,
        "paymentLink": f"bitcoin:{address}?amount={due}",
        "rate": "1" if is_in_btc else str(price_of(row)),
        "amount": btc_shown(row["amount_sats"]),
        "due": due,
        "totalPaid": came,
        "paymentMethodPaid": came,
        "networkFee": "0",
        "payments": [
            {
                "id": f"{output['txid']}-{output['vout']}",
                "receivedDate": output["first_seen_at"] // 1000,
                "value": btc_shown(output["amount_sats"]),
                "fee": "0",
                "status": "Settled" if output["payment_id"] else "Processing",
                "destination": address,
            }
            for output in outputs
        ],
        "additionalData": {},
    }
    return answer([method])


def speed_of(confirmations: int) -> str:
    """The name of so many confirmations, or of the next greater number that has one."""
    return {1: "MediumSpeed", 2: "LowMediumSpeed"}.get(confirmations, "LowSpeed")


def _found(service: Service, store: Row, id: str) -> Row:
    row = service.db.row(stores.ORDER, id=id, store_id=store["id"])
    if row is None:
        raise NotFound("there is no invoice with this id")
    return row


def _shown(service: Service, row: Row) -> dict[str, Any]:
    rules, sent = rules_for(service.settings, row), json.loads(row["shop_order"])
    status, additional = meaning_of(row, rules)
    expires_s = row["expires_at"] // 1000
    return {
        "id": row["id"],
        "storeId": row["store_id"],
        "amount": sent["amount"],
        "currency": sent["currency"],
        "type": "Standard",
        "checkoutLink": f"{service.settings.base_url}/pay/{row['id']}",
        "createdTime": row["created_at"] // 1000,
        "expirationTime": expires_s,
        "monitoringExpiration": expires_s + MONITORED_S,
        "status": status,
        "additionalStatus": additional,
        "availableStatusesForManualMarking": ["Invalid"] if row["status"] == "open" else [],
        "archived": row["archived_at"] is not None,
        "metadata": json.loads(row["metadata"] or "{}"),
        "checkout": {
            "speedPolicy": speed_of(rules.confirmations),
            "paymentMethods": ["BTC"],
            "defaultPaymentMethod": "BTC",
            "expirationMinutes": (row["expires_at"] - row["created_at"]) // 60_000,
            "monitoringMinutes": MONITORED_S // 60,
            "paymentTolerance": Fragment(str(rules.tolerance_percent)),
            "redirectURL": sent.get("redirectURL"),
            "redirectAutomatically": sent.get("redirectAutomatically", False),
            "defaultLanguage": sent.get("defaultLanguage"),
        },
    }
