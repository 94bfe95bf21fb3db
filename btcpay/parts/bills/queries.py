"""SQL statements about bills, their invoices and their series."""

from typing import NamedTuple

from peewee import Case, Expression, Select, fn

from btcpay.parts.bills.models import Bill, BillStatus
from btcpay.values.statuses import InvoiceStatus
from storage.models import Event, Invoice, Merchant
from storage.queries import invoices
from storage.queries.events import Kind
from storage.queries.lists import keyset
from storage.statement import all_columns, count_of, eq, param, params, rows_as

_THIS = eq(Bill.id)
_OWN = eq(Bill.merchant_id)
_IS_OPEN = Bill.status == BillStatus.OPEN
BY_ID = Bill.select().where(_THIS)
LOCKED = BY_ID.for_update()
ADD = rows_as(Bill, Bill.insert(all_columns(Bill)).returning(*Bill._meta.sorted_fields))
NEWEST = Bill.select().order_by(*keyset.order(Bill)).limit(param("limit"))
POSITION = keyset.position_query(Bill).where(_OWN)
LIST = keyset.older(Bill.select().where(_OWN), Bill)
LIST_BY_STATUS = LIST.where(eq(Bill.status))
OF_SERIES = NEWEST.where(_OWN, eq(Bill.series_id))
DUE = LIST.where(_IS_OPEN, Bill.due_ms >= param("now"))
OVERDUE = LIST.where(_IS_OPEN, Bill.due_ms < param("now"))
# The merchant's open bills that are due from `since` to `before`, earliest first.
OPEN = (
    Bill.select()
    .where(_OWN, _IS_OPEN, Bill.due_ms >= param("since"), Bill.due_ms < param("before"))
    .order_by(Bill.due_ms, Bill.seq)
    .limit(param("limit"))
)
MOST_COUNTED = 100


def _count_open_of_outer(*due: Expression) -> Select:
    """Returns a subquery that counts open bills of the outer query's merchant.

    `due` are conditions on the time when a bill is due. The result is never more than
    MOST_COUNTED.
    """
    own = Bill.select(Bill.id).where(Bill.merchant_id == Merchant.id, _IS_OPEN)
    return count_of(own.where(*due), MOST_COUNTED)


OVERDUE_OF_OUTER = _count_open_of_outer(Bill.due_ms < param("now"))
DUE_OF_OUTER = _count_open_of_outer(Bill.due_ms.between(param("now"), param("until")))
# Invoices of a bill that have received something or can still be paid. Other invoices
# are not shown on the bill's page.
_OF_BILL = Invoice.bill_id == param("id")
_HAS_RECEIVED = (Invoice.received_sats > 0) | (Invoice.unapplied_sats > 0)
# Sorts invoices by the sequence numbers of the events that closed them, since two events
# can have the same time in milliseconds.
_CLOSED_BY = Event.select(fn.MAX(Event.seq)).where(
    (Event.invoice_id == Invoice.id)
    & Event.kind.in_((Kind.PAID, Kind.EXPIRED, Kind.CANCELED))
)
INVOICES = (
    Invoice.select()
    .where(_OF_BILL & ((Invoice.status == InvoiceStatus.OPEN) | _HAS_RECEIVED))
    .order_by(
        Case(
            None, [(Invoice.status == InvoiceStatus.OPEN, keyset.FIRST.at)], _CLOSED_BY
        ),
        Invoice.seq,
    )
)
UNPAID_COUNTS = invoices.WAITED_FOR.where(Invoice.bill_id == param("through"))
PAID_INVOICES = Invoice.select(Invoice.id).where(
    _OF_BILL, Invoice.status == InvoiceStatus.PAID
)


class BillNumber(NamedTuple):
    """The receipt number and the tax rate of one of a bill's invoices."""

    receipt_number: int
    tax_percent: str | None


# The bill's receipt number is the lowest one: it stays the same, whatever is paid later.
RECEIPT = rows_as(
    BillNumber,
    Invoice.select(Invoice.receipt_number, Invoice.tax_percent)
    .where(_OF_BILL, Invoice.receipt_number.is_null(False))
    .order_by(Invoice.receipt_number)
    .limit(1),
)
GIVE_RECEIPT = Invoice.update(
    params(Invoice.receipt_number, Invoice.tax_percent)
).where(eq(Invoice.id), Invoice.receipt_number.is_null())
ALL_INVOICES = Invoice.select(Invoice.id).where(_OF_BILL).order_by(Invoice.seq)
STORE_SUMS = Bill.update(params(Bill.paid, Bill.status, Bill.paid_ms)).where(
    _THIS & (Bill.status == param("from_status"))
)
END = Bill.update({Bill.status: BillStatus.ENDED, Bill.paid_ms: None}).where(
    _THIS, _IS_OPEN
)
END_SERIES = Bill.update({Bill.renews_ms: None}).where(
    _THIS & Bill.renews_ms.is_null(False)
)
STOP = Bill.update({Bill.renews_ms: None, Bill.stopped_ms: param("at")}).where(
    _THIS, Bill.every.is_null(False), Bill.stopped_ms.is_null()
)
_IS_HELD = Bill.held_ms.is_null(False)
TO_RENEW = (
    Bill.select(Bill.id, Bill.every)
    .where(Bill.renews_ms <= param("now"), ~_IS_HELD)
    .order_by(Bill.renews_ms)
)
# Suspends a series if the bill of a further period is still missing.
HOLD = Bill.update({Bill.held_ms: param("now")}).where(
    _THIS & (Bill.renews_ms <= param("now")) & ~_IS_HELD
)
HELD = Bill.select().where(_IS_HELD, Bill.renews_ms.is_null(False)).order_by(Bill.seq)
RESUME = Bill.update({Bill.held_ms: None}).where(_THIS & _IS_HELD)
# The conditions on number and time let only one of two concurrent runs create the bill.
RENEW = Bill.update(
    {Bill.renews: Bill.renews + 1, Bill.renews_ms: param("next_ms")}
).where(_THIS, Bill.renews == param("number"), Bill.renews_ms == param("at"))
# Sets the series to another period, unless another process has changed it or the
# customer has ended it meanwhile.
MOVE = Bill.update(
    {
        Bill.renews: param("number"),
        Bill.renews_ms: param("next_ms"),
        Bill.held_ms: param("held_ms"),
    }
).where(_THIS, eq(Bill.renews), Bill.stopped_ms.is_null())
OF_PERIOD = Bill.select(Bill.id).where(
    eq(Bill.series_id, Bill.number), Bill.undone_ms.is_null()
)
# Open bills that series have created since a time.
_MADE = (Bill.number > 0) & (Bill.created_ms >= param("since")) & _IS_OPEN
MADE_SINCE = (
    Bill.select(Bill.id, Bill.merchant_id, Bill.series_id)
    .where(_MADE)
    .order_by(Bill.seq)
)
MADE_OF_SERIES = (
    Bill.select(Bill.id)
    .where(_MADE, eq(Bill.series_id))
    .order_by(Bill.number, Bill.seq)
)
UNDO = Bill.update({Bill.status: BillStatus.ENDED, Bill.undone_ms: param("at")}).where(
    _THIS & _IS_OPEN & (Bill.number > 0)
)
# Erases the customer's e-mail address of a closed bill when its retention time is over.
# The first bill of a series keeps the address while the series continues.
ERASE = Bill.update({Bill.customer_email: None}).where(
    Bill.customer_email.is_null(False),
    Bill.created_ms < param("before"),
    ~_IS_OPEN,
    fn.COALESCE(Bill.paid_ms, 0) < param("before"),
    Bill.renews_ms.is_null(),
)
