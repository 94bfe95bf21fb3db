"""SQL statements about stores, their orders and their webhooks."""

from peewee import Case, fn

from btcpay.parts.greenfield.models import Store
from btcpay.values.statuses import InvoiceStatus
from storage.models import Invoice, Merchant, Receiver
from storage.queries.blocks import is_given
from storage.queries.receivers import WELL
from storage.statement import eq, param, params, required_columns, rows_as

# A shop has one store, however many keys were issued for it.
ADD = Store.insert(required_columns(Store)).on_conflict("NOTHING")
OF_SHOP = Store.select().where(eq(Store.merchant_id, Store.shop_url))


class OfMerchant(Store):
    name: str
    currency: str


BY_ID = rows_as(
    OfMerchant,
    Store.select(Store, Merchant.name, Merchant.currency)
    .join(Merchant, on=(Merchant.id == Store.merchant_id))
    .where(eq(Store.id)),
)

_OWN = eq(Invoice.store_id)
_THIS = _OWN & eq(Invoice.id)
ORDER = Invoice.select().where(_THIS)
# Greenfield's status in SQL, with the same result as `orders.plug_in_status`. An open
# order is New or Processing, depending on the received sum. The order and the service
# have a tolerance for underpayment each; the smaller one applies.
STATUS_BY_OURS = {
    InvoiceStatus.PAID: "Settled",
    InvoiceStatus.EXPIRED: "Expired",
    InvoiceStatus.CANCELED: "Invalid",
}
STATUSES = ("New", "Processing", *STATUS_BY_OURS.values())
_OWN_PERCENT = Invoice.tolerance_percent.cast("NUMERIC")
_USUAL_PERCENT = param("tolerance_percent").cast("NUMERIC")
_PERCENT = Case(None, [(_OWN_PERCENT < _USUAL_PERCENT, _OWN_PERCENT)], _USUAL_PERCENT)
_MISSING_SATS = Invoice.amount_sats - Invoice.received_sats
# Rounded, since SQLite computes the percentage in doubles.
_IS_ENOUGH = fn.ROUND(Invoice.amount_sats * _PERCENT, 6) >= _MISSING_SATS * 100
_OF_OPEN = Case(None, [(_IS_ENOUGH, "Processing")], "New")
_STATUS = Case(Invoice.status, list(STATUS_BY_OURS.items()), _OF_OPEN)
ORDERS = (
    Invoice.select()
    .where(_OWN & Invoice.archived_ms.is_null() & is_given(_STATUS))
    .order_by(Invoice.created_ms.desc(), Invoice.seq.desc())
    .limit(param("limit"))
    .offset(param("offset"))
)
ORDERS_OF_NUMBERS = ORDERS.where(is_given(Invoice.order_id, "numbers"))
SET_METADATA = Invoice.update(params(Invoice.metadata, Invoice.order_id)).where(_THIS)
ARCHIVE = Invoice.update(params(Invoice.archived_ms)).where(
    _THIS & Invoice.archived_ms.is_null()
)

_OF_STORE = eq(Receiver.store_id)
_DISABLED = (Receiver.disabled_ms, Receiver.disabled_reason)
_CHANGEABLE = (Receiver.url, Receiver.kinds, Receiver.secret, *_DISABLED)
# A webhook that is registered again keeps its id and its pending deliveries.
PUT_WEBHOOK = Receiver.insert(
    required_columns(Receiver) | params(Receiver.store_id, *_CHANGEABLE)
).on_conflict(conflict_target=[Receiver.id], preserve=_CHANGEABLE, update=WELL)
WEBHOOKS = Receiver.select().where(_OF_STORE).order_by(Receiver.created_ms, Receiver.id)
WEBHOOK = Receiver.select().where(_OF_STORE & eq(Receiver.id))
