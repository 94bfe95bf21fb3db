"""Shops that speak Greenfield, what they have ordered, and their webhooks."""

from storage.models import Invoice, Merchant, Receiver, Store
from storage.queries.receivers import WELL
from storage.statement import needed, shaped, slot, slots

# The same shop is one store, however many keys it has had.
ADD = Store.insert(needed(Store)).on_conflict("NOTHING")
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

_OF_STORE = Receiver.store_id == slot("store_id")
_SHOWN = (
    Receiver.url,
    Receiver.kinds,
    Receiver.secret,
    Receiver.disabled_at,
    Receiver.disabled_reason,
)
# A webhook that is registered anew keeps its id and its waiting deliveries.
PUT_WEBHOOK = Receiver.insert(needed(Receiver) | slots(Receiver.store_id, *_SHOWN)).on_conflict(
    conflict_target=[Receiver.id], preserve=_SHOWN, update=WELL
)
WEBHOOKS = Receiver.select().where(_OF_STORE).order_by(Receiver.created_at, Receiver.id)
WEBHOOK = Receiver.select().where(_OF_STORE & (Receiver.id == slot("id")))
