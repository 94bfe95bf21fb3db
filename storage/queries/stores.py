"""Shops that speak Greenfield, and what they have ordered."""

from storage.models import Invoice, Merchant, Store
from storage.statement import needed, shaped, slot, slots

# The same shop is one store, however many keys it has had.
ADD = Store.insert(needed(Store)).on_conflict_ignore()
OF_SHOP = Store.select().where(
    (Store.merchant_id == slot("merchant_id")) & (Store.shop_url == slot("shop_url"))
)


class OfMerchant(Store):
    name: str
    currency: str


BY_ID = shaped(
    OfMerchant,
    Store.select(Store, Merchant.name, Merchant.currency)
    .join(Merchant, on=(Merchant.id == Store.merchant_id))
    .where(Store.id == slot("id")),
)

_OWN = Invoice.store_id == slot("store_id")
_THIS = _OWN & (Invoice.id == slot("id"))
ORDER = Invoice.select().where(_THIS)
ORDERS = (
    Invoice.select()
    .where(_OWN & Invoice.archived_at.is_null())
    .order_by(Invoice.created_at.desc(), Invoice.seq.desc())
    .limit(slot("limit"))
    .offset(slot("offset"))
)
ORDERS_OF_STATUS = ORDERS.where(Invoice.status == slot("status"))
ORDERS_OF_NUMBER = ORDERS.where(Invoice.order_id == slot("order_id"))
SET_METADATA = Invoice.update(slots(Invoice.metadata, Invoice.order_id)).where(_THIS)
ARCHIVE = Invoice.update(slots(Invoice.archived_at)).where(_THIS & Invoice.archived_at.is_null())
