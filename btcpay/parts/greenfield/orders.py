"""A shop's orders: made, listed, shown, marked. Times are unix seconds, amounts texts."""

import json
from typing import Any

from flask import request
from marshmallow import ValidationError
from orjson import Fragment

from btcpay.invoices import create, manual, orders, quotes
from btcpay.invoices.status import rules_for
from btcpay.parts.greenfield import asked, queries
from btcpay.settlement.decide import missing_sats
from btcpay.settlement.values import Rules
from btcpay.values.money import btc_shown, price_of
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import to_ms
from btcpay.web.service import Service
from schemas.any_case import load_filters
from storage.models import Invoice
from storage.queries import blocks, invoices, payments
from storage.statement import changed
from storage.values import Values

Json = dict[str, Any]
MOST_LISTED = 100  # whatever `take` says: each may have its metadata
MONITORED_S = 7 * 24 * 3600  # plug-ins want a number; in truth the watch never ends


def create_order(service: Service, store: queries.OfMerchant) -> Json:
    """An invoice for what the shop asks, at the price of a bitcoin in the order's own currency."""
    db = service.db
    settings = service.settings
    wanted, metadata = asked.body_of(asked.NewOrder())
    order = asked.order_of(store, wanted, metadata, settings.link_invoice_expiry_min)
    quote = asked.checked("amount", quotes.quote, service.prices, service.now(), order)
    with db.write():
        made = create.new_invoice(db, settings.network, service.now(), quote)
    return get_order(service, store, db.only(invoices.WHOLE, id=made.id))


def list_orders(service: Service, store: queries.OfMerchant) -> list[Json]:
    """The newest orders with these numbers and statuses that are not archived."""
    wanted = load_filters(asked.Wanted(), request.args.items(multi=True))
    db = service.db
    tolerance = service.settings.underpayment_tolerance_percent
    query = queries.ORDERS
    more = Values(store_id=store.id, tolerance_percent=str(tolerance))
    more["texts"] = blocks.given(wanted["status"])
    if "orderId" in wanted:
        query = queries.ORDERS_OF_NUMBERS
        numbers = [number[: asked.MAX_NUMBER] for number in wanted["orderId"]]
        more["numbers"] = blocks.given(numbers)
    more["limit"], more["offset"] = min(wanted["take"], MOST_LISTED), wanted["skip"]
    return [get_order(service, store, row) for row in db.rows(query, **more)]


def get_order(service: Service, store: queries.OfMerchant, order: Invoice) -> Json:
    rules = rules_for(service.settings, order)
    sent = json.loads(order.shop_order or "{}")
    status, additional = meaning_of(order, rules)
    expires_at = order.expires_at or 0  # a shop's order always has one
    expires_s = expires_at // 1000
    return {
        "id": order.id,
        "storeId": store.id,
        "amount": sent["amount"],
        "currency": sent["currency"],
        "type": "Standard",
        "checkoutLink": f"{service.settings.base_url}/pay/{order.id}",
        "createdTime": order.created_at // 1000,
        "expirationTime": expires_s,
        "monitoringExpiration": expires_s + MONITORED_S,
        "status": status,
        "additionalStatus": additional,
        "availableStatusesForManualMarking": ["Invalid"]
        if order.status == InvoiceStatus.OPEN
        else [],
        "archived": order.archived_at is not None,
        "metadata": Fragment(order.metadata or "{}"),
        "checkout": {
            "speedPolicy": asked.SPEED_NAMES.get(rules.confirmations, "LowSpeed"),
            "paymentMethods": ["BTC"],
            "defaultPaymentMethod": "BTC",
            "expirationMinutes": (expires_at - order.created_at) // 60_000,
            "monitoringMinutes": MONITORED_S // 60,
            "paymentTolerance": Fragment(str(rules.tolerance_percent)),
            "redirectURL": sent.get("redirectURL"),
            "redirectAutomatically": sent.get("redirectAutomatically", False),
            "defaultLanguage": sent.get("defaultLanguage"),
        },
    }


def meaning_of(row: Invoice, rules: Rules) -> tuple[str, str]:
    """Greenfield's status and additional status.

    PaidLate means that the confirmed money is enough: OpenCart then completes the order.
    """
    received_sats = row.received_sats
    beside_sats = row.beside_sats
    status = row.status
    amount_sats = row.amount_sats
    percent = rules.tolerance_percent
    if status == InvoiceStatus.CANCELED:
        return "Invalid", "Marked"
    if status == InvoiceStatus.EXPIRED:
        if not missing_sats(status, amount_sats, beside_sats, percent):
            return "Expired", "PaidLate"
        return "Expired", "PaidPartial" if received_sats or beside_sats else "None"
    if status == InvoiceStatus.PAID:
        over = "PaidOver" if received_sats + beside_sats > amount_sats else "None"
        return "Settled", "Marked" if row.settled_reason else over
    if missing_sats(status, amount_sats, received_sats, percent):
        return "New", "PaidPartial" if received_sats else "None"
    return "Processing", "PaidOver" if received_sats > amount_sats else "None"


def set_metadata(service: Service, store: queries.OfMerchant, order: Invoice) -> Json:
    """Replaces the metadata and the order's number, which is part of them."""
    said, metadata = asked.body_of(asked.NewMetadata())
    anew: Values = {
        "metadata": metadata,
        "order_id": asked.order_id_of(said["metadata"]),
    }
    service.db.run(
        queries.SET_METADATA, **anew | {"store_id": store.id, "id": order.id}
    )
    return get_order(service, store, changed(order, **anew))


def archive_order(service: Service, store: queries.OfMerchant, order: Invoice) -> Json:
    """Hides the order from the list; its address is still watched for ever."""
    at = to_ms(service.now())
    service.db.run(queries.ARCHIVE, store_id=store.id, id=order.id, archived_at=at)
    return {}


def mark_order(service: Service, store: queries.OfMerchant, order: Invoice) -> Json:
    """Invalid cancels, by the rules of a cancellation. Settled needs a human, so it is refused."""
    db = service.db
    said, _ = asked.body_of(asked.Mark())
    if said["status"] == "Settled":
        only = "only the merchant accepts what came: `blocktill invoice settle`"
        raise ValidationError(only, "status")
    at = service.now()
    by = "by the shop"
    asked.checked(
        "status", manual.cancel, db, service.settings, order.id, at, False, by
    )
    return get_order(service, store, db.only(invoices.WHOLE, id=order.id))


def order_methods(
    service: Service, store: queries.OfMerchant, order: Invoice
) -> list[Json]:
    percent = rules_for(service.settings, order).tolerance_percent
    outputs = service.db.rows(payments.ALIVE, invoice_id=order.id)
    came = btc_shown(sum(output.amount_sats for output in outputs))
    due = btc_shown(
        missing_sats(order.status, order.amount_sats, order.received_sats, percent)
    )
    is_in_btc = json.loads(order.shop_order or "{}")["currency"] in (
        orders.BTC,
        asked.SATS,
    )
    address = order.deposit_address
    method = {
        "paymentMethod": "BTC",
        "paymentMethodId": "BTC-CHAIN",
        "cryptoCode": "BTC",
        "currency": "BTC",
        "activated": True,
        "destination": address,
        "paymentLink": f"bitcoin:{address}?amount={due}",
        "rate": "1" if is_in_btc else str(price_of(order)),
        "amount": btc_shown(order.amount_sats),
        "due": due,
        "totalPaid": came,
        "paymentMethodPaid": came,
        "networkFee": "0",
        "payments": [
            {
                "id": f"{output.txid}-{output.vout}",
                "receivedDate": output.first_seen_at // 1000,
                "value": btc_shown(output.amount_sats),
                "fee": "0",
                "status": "Settled" if output.payment_id else "Processing",
                "destination": address,
            }
            for output in outputs
        ],
        "additionalData": {},
    }
    return [method]
