"""Queries of payment links."""

from peewee import fn

from btcpay.values.statuses import InvoiceStatus, LinkStatus
from storage.models import Invoice, Merchant, PaymentLink
from storage.statement import all_columns, eq, param, params, rows_as

BY_ID = PaymentLink.select().where(eq(PaymentLink.merchant_id, PaymentLink.id))
ANY_BY_ID = PaymentLink.select().where(eq(PaymentLink.id))


class LinkToPay(PaymentLink):
    """A payment link with the output descriptor of its merchant."""

    descriptor: str


TO_PAY = rows_as(
    LinkToPay,
    PaymentLink.select(*PaymentLink._meta.sorted_fields, Merchant.descriptor)
    .join(Merchant, on=(PaymentLink.merchant_id == Merchant.id))
    .where(eq(PaymentLink.id)),
)
# Locks the link's row. The link's invoices are counted under this lock.
LOCKED = ANY_BY_ID.for_update()
LIST = (
    PaymentLink.select()
    .where(eq(PaymentLink.merchant_id))
    .order_by(PaymentLink.created_ms.desc(), PaymentLink.seq.desc())
    .limit(param("limit"))
)

# The sum of the link's paid invoices in the currency's smallest units. `minor` is the number of
# smallest units in one unit.
RAISED = rows_as(
    tuple[int],
    Invoice.select(
        fn.COALESCE(
            fn.SUM(fn.ROUND(Invoice.amount.cast("NUMERIC") * param("minor"))), 0
        ).cast("BIGINT")
    ).where(
        Invoice.payment_link_id == param("through"),
        Invoice.status == InvoiceStatus.PAID,
    ),
)
# The currencies of active links. A link keeps its currency if its merchant's changes.
CURRENCIES = (
    PaymentLink.select(PaymentLink.currency)
    .where(PaymentLink.status == LinkStatus.ACTIVE)
    .distinct()
)

ADD = rows_as(
    PaymentLink,
    PaymentLink.insert(all_columns(PaymentLink)).returning(
        *PaymentLink._meta.sorted_fields
    ),
)

SET_STATUS = PaymentLink.update(params(PaymentLink.status)).where(eq(PaymentLink.id))
# Columns that editing a link does not change: the price stays, and another query sets the status.
_KEPT = "id merchant_id status currency amount amount_usd amount_mode created_ms"
EDIT = PaymentLink.update(
    params(
        *(
            field
            for field in all_columns(PaymentLink)
            if field.name not in _KEPT.split()
        )
    )
).where(eq(PaymentLink.id))
