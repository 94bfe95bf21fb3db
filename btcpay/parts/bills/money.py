"""What is paid toward a bill: counted again whenever one of its invoices has received something."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from btcpay import hooks
from btcpay.merchants.account import dust_limit_of
from btcpay.notify.publish import publish_resource
from btcpay.parts.bills import queries
from btcpay.parts.bills.kinds import RESOURCE, BillKind
from btcpay.parts.bills.mail import send_later
from btcpay.parts.bills.models import Bill
from btcpay.values.money import (
    asked_of,
    of_minor,
    price_of,
    sats_for,
    stored_amount,
    to_minor,
)
from btcpay.values.statuses import BillStatus, InvoiceStatus
from btcpay.values.times import to_ms
from storage.database import Database
from storage.models import Invoice


class Share(NamedTuple):
    """What one invoice asks for and has received of a bill, at the invoice's own price.

    `received_sats` is what settlement counts.
    """

    amount: Decimal
    asked_sats: int
    received_sats: int
    price: Decimal


class Totals(NamedTuple):
    """A bill's sums. `beyond_sats`: what each share brought beyond the bill's amount."""

    paid: Decimal
    is_paid: bool
    beyond_sats: list[int]


class Due(NamedTuple):
    """What is still to be paid of a bill.

    `missing` is to be paid, `coming` is on its way to the invoice with the id `coming_to`. `parts`
    are its invoices, each with its worth.
    """

    amount: Decimal
    paid: Decimal
    missing: Decimal
    coming: Decimal
    coming_to: str | None
    is_overdue: bool
    parts: list[tuple[Invoice, Decimal]]


def worth_of(share: Share, currency: str) -> Decimal:
    """Amount x received / asked, at most the amount, rounded down."""
    received_sats = min(share.received_sats, share.asked_sats)
    amount_minor = to_minor(share.amount, currency)
    return of_minor(amount_minor * received_sats // share.asked_sats, currency)


def totals_of(
    amount: Decimal, currency: str, shares: Sequence[Share], dust_limit_sats: int
) -> Totals:
    """The sums of a bill with these shares, the oldest first. Pure.

    The bill is paid if nothing is missing, or less than a wallet can send (`dust_limit_sats`) at
    the price of the last share that brought something.
    """
    worths = [worth_of(share, currency) for share in shares]
    paid = sum(worths, of_minor(0, currency))
    missing = amount - paid
    beyond_sats = _beyond_sats(-missing, shares, worths)
    paying = [share for share in shares if share.received_sats]
    if not paying:
        return Totals(paid, False, beyond_sats)
    if missing <= 0:
        return Totals(paid, True, beyond_sats)
    missing_sats = sats_for(missing, paying[-1].price) or dust_limit_sats
    return Totals(paid, missing_sats < dust_limit_sats, beyond_sats)


def _beyond_sats(
    excess: Decimal, shares: Sequence[Share], worths: Sequence[Decimal]
) -> list[int]:
    """How many satoshis of each share are excess, at the share's price, in the shares' order.

    The last share is excess first, then the one before it; of each at most its worth.
    """
    newest_first: list[int] = []
    for share, worth in zip(reversed(shares), reversed(worths), strict=True):
        beyond = max(Decimal(0), min(excess, worth))
        excess -= beyond
        sats = 0
        if beyond:
            sats = sats_for(beyond, share.price) or 0
        newest_first.append(sats)
    return newest_first[::-1]


def related_ids(db: Database, rows: Iterable[Invoice]) -> set[str]:
    """Ids of the paid invoices of these invoices' bills.

    How much of one of them is too much depends on the others of its bill.
    """
    ids: set[str] = set()
    for bill_id in {row.bill_id for row in rows if row.bill_id}:
        ids.update(row.id for row in db.rows(queries.PAID_INVOICES, id=bill_id))
    return ids


def recount(db: Database, row: Invoice, now: datetime) -> int:
    """Counts the bill of this invoice again; returns the satoshis that it brought beyond the bill.

    It is called in the transaction of the change, behind the lock of the merchant's balance. A bill
    that has ended keeps its sums.
    """
    if row.bill_id is None:
        return 0
    bill = db.only(queries.LOCKED, id=row.bill_id)
    rows = db.rows(queries.INVOICES, id=row.bill_id)
    if bill.status == BillStatus.ENDED:
        return 0
    shares = [_share_of(invoice) for invoice in rows]
    totals = totals_of(
        stored_amount(bill.amount), bill.currency, shares, dust_limit_of(row.script)
    )
    _store(db, bill, totals, now)
    ids = [invoice.id for invoice in rows]
    beyond_sats = dict(zip(ids, totals.beyond_sats, strict=True))
    return beyond_sats.get(row.id, 0)


def _store(db: Database, bill: Bill, totals: Totals, now: datetime) -> None:
    """Writes the sums; if they change the bill's status, tells of it."""
    status = BillStatus.OPEN
    paid_ms = None
    if totals.is_paid:
        status = BillStatus.PAID
        paid_ms = bill.paid_ms or to_ms(now)
    db.run(
        queries.STORE_SUMS,
        id=bill.id,
        paid=str(totals.paid),
        status=status,
        paid_ms=paid_ms,
        from_status=bill.status,
    )
    if status == bill.status:
        return
    if totals.is_paid:
        publish_resource(db, RESOURCE, bill.id, BillKind.PAID, now)
        send_later(db, bill, {"paid": to_ms(now)})
    else:
        publish_resource(db, RESOURCE, bill.id, BillKind.REOPENED, now)


def due_of(db: Database, bill: Bill, now: datetime) -> Due:
    """What is still to be paid of the bill, and what is on its way. Raises BadRow."""
    amount = stored_amount(bill.amount)
    paid = stored_amount(bill.paid)
    rows = db.rows(queries.INVOICES, id=bill.id)
    parts = [(row, worth_of(_share_of(row), bill.currency)) for row in rows]
    coming = of_minor(0, bill.currency)
    coming_to = None
    for row, worth in parts:
        if row.status == InvoiceStatus.OPEN and row.unconfirmed_sats:
            whole = _share_of(row)._replace(received_sats=row.received_sats)
            coming += worth_of(whole, bill.currency) - worth
            coming_to = row.id
    missing = max(amount - paid - coming, Decimal(0))
    is_overdue = bill.due_ms < to_ms(now)
    return Due(amount, paid, missing, coming, coming_to, is_overdue, parts)


def _share_of(row: Invoice) -> Share:
    """The invoice's share, of confirmed satoshis alone.

    A canceled invoice has none: if its money is accepted, it is canceled no more.
    """
    sats = row.received_sats - row.unconfirmed_sats
    if row.status == InvoiceStatus.CANCELED:
        sats = 0
    return Share(asked_of(row).amount, row.amount_sats, sats, price_of(row))


HOOK = hooks.InvoiceSums(related_ids=related_ids, recount=recount)
