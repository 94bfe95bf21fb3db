"""The API operations on a shop's orders, which Greenfield calls invoices.

Each operation returns the fields of the JSON response. Times are in unix seconds,
amounts are strings.
"""

import json
from typing import Any

from flask import request
from marshmallow import ValidationError
from orjson import Fragment

from btcpay.invoices import create, manual, orders, quotes
from btcpay.invoices.status import rules_for
from btcpay.parts.greenfield import bodies, new_order, queries
from btcpay.settlement.decide import missing_sats
from btcpay.settlement.values import Rules
from btcpay.values.money import full_btc_text, price_of
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import to_ms
from btcpay.web.service import Service
from schemas.any_case import load_filters
from storage.models import Invoice, Output
from storage.queries import blocks, invoices, payments
from storage.statement import replace
from storage.values import Values

Json = dict[str, Any]
# The maximum number of orders in a list, even if the request's `take` is greater, since each
# order can have large metadata.
MOST_LISTED = 100
# Plug-ins expect a number of seconds; in fact the service watches addresses for ever.
MONITORED_S = 7 * 24 * 3600


def create_order(service: Service, store: queries.OfMerchant) -> Json:
    """Creates an invoice for the shop's order, and returns it in Greenfield's form.

    The amount is converted at the current price of one bitcoin in the order's currency.
    """
    db = service.db
    settings = service.settings
    fields, metadata = bodies.read_fields(bodies.NewOrder())
    usual_min = settings.link_invoice_expiry_min
    order = new_order.order_of(store, fields, metadata, usual_min)
    with bodies.errors_about("amount"):
        quote = quotes.quote(service.prices, service.now(), order)
    with db.write():
        invoice = create.new_invoice(db, settings.network, service.now(), quote)
    return get_order(service, store, db.get(invoices.WHOLE, id=invoice.id))


def list_orders(service: Service, store: queries.OfMerchant) -> list[Json]:
    """Returns the orders that match the query string, newest first, at most MOST_LISTED.

    Archived orders are left out.
    """
    filters = load_filters(bodies.OrderFilters(), request.args.items(multi=True))
    tolerance_percent = service.settings.underpayment_tolerance_percent
    query = queries.ORDERS
    values: Values = {
        "store_id": store.id,
        "tolerance_percent": str(tolerance_percent),
        "texts": blocks.json_keys(filters["status"]),
        "limit": min(filters["take"], MOST_LISTED),
        "offset": filters["skip"],
    }
    if "orderId" in filters:
        query = queries.ORDERS_OF_NUMBERS
        # Stored order numbers are cut to this length too.
        numbers = [number[: new_order.MAX_NUMBER] for number in filters["orderId"]]
        values["numbers"] = blocks.json_keys(numbers)
    rows = service.db.rows(query, **values)
    return [get_order(service, store, row) for row in rows]


def get_order(service: Service, store: queries.OfMerchant, order: Invoice) -> Json:
    """Returns an order in Greenfield's form."""
    rules = rules_for(service.settings, order)
    shop_order = json.loads(order.shop_order or "{}")
    status, additional = plug_in_status(order, rules)
    expires_ms = order.expires_ms or 0  # always set for a shop's order
    expires_s = expires_ms // 1000
    marks = []
    if order.status == InvoiceStatus.OPEN:
        marks.append("Invalid")
    return {
        "id": order.id,
        "storeId": store.id,
        "amount": shop_order["amount"],
        "currency": shop_order["currency"],
        "type": "Standard",
        "checkoutLink": f"{service.settings.base_url}/pay/{order.id}",
        "createdTime": order.created_ms // 1000,
        "expirationTime": expires_s,
        "monitoringExpiration": expires_s + MONITORED_S,
        "status": status,
        "additionalStatus": additional,
        "availableStatusesForManualMarking": marks,
        "archived": order.archived_ms is not None,
        "metadata": Fragment(order.metadata or "{}"),
        "checkout": {
            "speedPolicy": bodies.SPEED_NAMES.get(rules.confirmations, "LowSpeed"),
            "paymentMethods": ["BTC"],
            "defaultPaymentMethod": "BTC",
            "expirationMinutes": (expires_ms - order.created_ms) // 60_000,
            "monitoringMinutes": MONITORED_S // 60,
            "paymentTolerance": Fragment(str(rules.tolerance_percent)),
            "redirectURL": shop_order.get("redirectURL"),
            "redirectAutomatically": shop_order.get("redirectAutomatically", False),
            "defaultLanguage": shop_order.get("defaultLanguage"),
        },
    }


def plug_in_status(row: Invoice, rules: Rules) -> tuple[str, str]:
    """Returns Greenfield's status and additional status of an order.

    A payment after the expiry is PaidLate only if the confirmed payments are enough,
    since OpenCart completes the order then.
    """
    status = row.status
    amount_sats = row.amount_sats
    received_sats = row.received_sats
    late_sats = row.unapplied_sats  # late payments do not apply to an expired order
    percent = rules.tolerance_percent
    if status == InvoiceStatus.CANCELED:
        return "Invalid", "Marked"
    if status == InvoiceStatus.EXPIRED:
        if not missing_sats(status, amount_sats, late_sats, percent):
            return "Expired", "PaidLate"
        return "Expired", _detail("PaidPartial", received_sats + late_sats > 0)
    if status == InvoiceStatus.PAID:
        if row.settled_reason:
            return "Settled", "Marked"
        return "Settled", _detail("PaidOver", received_sats + late_sats > amount_sats)
    if missing_sats(status, amount_sats, received_sats, percent):
        return "New", _detail("PaidPartial", received_sats > 0)
    return "Processing", _detail("PaidOver", received_sats > amount_sats)


def _detail(name: str, applies: bool) -> str:
    """Returns `name` if it applies, else "None", Greenfield's word for no detail."""
    if applies:
        return name
    return "None"


def set_metadata(service: Service, store: queries.OfMerchant, order: Invoice) -> Json:
    """Replaces the order's metadata, and takes the order number from the new metadata."""
    fields, metadata = bodies.read_fields(bodies.NewMetadata())
    order_id = new_order.order_id_of(fields["metadata"])
    service.db.run(
        queries.SET_METADATA,
        store_id=store.id,
        id=order.id,
        metadata=metadata,
        order_id=order_id,
    )
    order = replace(order, metadata=metadata, order_id=order_id)
    return get_order(service, store, order)


def archive_order(service: Service, store: queries.OfMerchant, order: Invoice) -> Json:
    """Hides the order from lists. Payments to its address are still noticed."""
    at = to_ms(service.now())
    service.db.run(queries.ARCHIVE, store_id=store.id, id=order.id, archived_ms=at)
    return {}


def mark_order(service: Service, store: queries.OfMerchant, order: Invoice) -> Json:
    """Cancels an order. The status in the request must be Invalid.

    Raises ValidationError for the status Settled, which only the merchant may set, and
    if the order cannot be canceled.
    """
    db = service.db
    fields, _ = bodies.read_fields(bodies.Mark())
    if fields["status"] == "Settled":
        message = "only the merchant accepts what came: `blocktill invoice settle`"
        raise ValidationError(message, "status")
    with bodies.errors_about("status"):
        manual.cancel(
            db,
            service.settings,
            order.id,
            service.now(),
            force=False,
            where="by the shop",
        )
    return get_order(service, store, db.get(invoices.WHOLE, id=order.id))


def order_methods(
    service: Service,
    store: queries.OfMerchant,
    order: Invoice,
) -> list[Json]:
    """Returns the order's only payment method, with its address, sums and payments."""
    due_sats = missing_sats(
        status=order.status,
        amount_sats=order.amount_sats,
        received_sats=order.received_sats,
        tolerance_percent=rules_for(service.settings, order).tolerance_percent,
    )
    due = full_btc_text(due_sats)
    outputs = service.db.rows(payments.ALIVE, invoice_id=order.id)
    received = full_btc_text(sum(output.amount_sats for output in outputs))
    shop_order = json.loads(order.shop_order or "{}")
    rate = str(price_of(order))
    if shop_order["currency"] in (orders.BTC, new_order.SATS):
        rate = "1"
    address = order.deposit_address
    method = {
        "paymentMethod": "BTC",
        "paymentMethodId": "BTC-CHAIN",
        "cryptoCode": "BTC",
        "currency": "BTC",
        "activated": True,
        "destination": address,
        "paymentLink": f"bitcoin:{address}?amount={due}",
        "rate": rate,
        "amount": full_btc_text(order.amount_sats),
        "due": due,
        "totalPaid": received,
        "paymentMethodPaid": received,
        "networkFee": "0",
        "payments": [_payment(output, address) for output in outputs],
        "additionalData": {},
    }
    return [method]


def _payment(output: Output, address: str) -> Json:
    """Returns an output to the order's address in Greenfield's form."""
    status = "Processing"
    if output.payment_id:
        status = "Settled"
    return {
        "id": f"{output.txid}-{output.vout}",
        "receivedDate": output.first_seen_ms // 1000,
        "value": full_btc_text(output.amount_sats),
        "fee": "0",
        "status": status,
        "destination": address,
    }
