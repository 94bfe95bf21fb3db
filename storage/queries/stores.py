"""Shops that speak Greenfield, and what they have ordered."""

from storage.models import Invoice, Merchant, ShopOrder, Store
from storage.statement import every, needed, slot, slots

# The same shop is one store, however many keys it has had.
ADD = Store.insert(needed(Store)).on_conflict_ignore()
OF_SHOP = Store.select().where(
    (Store.merchant_id == slot("merchant_id")) & (Store.shop_url == slot("shop_url"))
)
BY_ID = (
    Store.select(Store, Merchant.name, Merchant.currency)
    .join(Merchant, on=(Merchant.id == Store.merchant_id))
    .where(Store.id == slot("id"))
)

# What the page of an order is shown in, and what it was asked for; of other invoices nothing.
OF_ORDER = (
    Invoice.select(Store.shop_url, ShopOrder.checkout)
    .join(Store, on=(Store.id == Invoice.store_id))
    .join(ShopOrder, on=(ShopOrder.invoice_id == Invoice.id))
    .where(Invoice.id == slot("id"))
)
ADD_ORDER = ShopOrder.insert(
    slots(*(field for field in every(ShopOrder) if field.name != "archived_at"))
)

# What the shop asked for has names of its own beside the invoice's columns.
_ORDERS = (
    Invoice.select(
        Invoice,
        ShopOrder.amount.alias("asked_amount"),
        ShopOrder.currency.alias("asked_currency"),
        ShopOrder.checkout,
        ShopOrder.archived_at,
    )
    .join(ShopOrder, on=(ShopOrder.invoice_id == Invoice.id))
    .where(Invoice.store_id == slot("store_id"))
)
ORDER = _ORDERS.where(Invoice.id == slot("id"))
ORDERS = (
    _ORDERS.where(ShopOrder.archived_at.is_null())
    .order_by(Invoice.created_at.desc(), Invoice.seq.desc())
    .limit(slot("limit"))
    .offset(slot("offset"))
)
ORDERS_OF_STATUS = ORDERS.where(Invoice.status == slot("status"))
ORDERS_OF_NUMBER = ORDERS.where(ShopOrder.order_id == slot("order_id"))
_THIS = ShopOrder.invoice_id == slot("invoice_id")
SET_NUMBER = ShopOrder.update(slots(ShopOrder.order_id)).where(_THIS)
SET_METADATA = Invoice.update(slots(Invoice.metadata)).where(Invoice.id == slot("invoice_id"))
ARCHIVE = ShopOrder.update({ShopOrder.archived_at: slot("at")}).where(
    _THIS & ShopOrder.archived_at.is_null()
)
