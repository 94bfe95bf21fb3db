"""Money moves a bill: what its invoices received is counted again whenever that has changed."""

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
    """An invoice of the bill, at its own price; `received_sats` is what settlement counts."""

    amount: Decimal
    asked_sats: int
    received_sats: int
    price: Decimal


class Totals(NamedTuple):
    """The state of a bill's sums. `beyond_sats`: what each part brought beyond the bill."""

    paid: Decimal
    is_paid: bool
    beyond_sats: list[int]


class Due(NamedTuple):
    """A bill's state: `missing` is to be paid, `coming` is on its way to the invoice `coming_to`.

    `parts`: its invoices, each with the worth that it adds.
    """

    amount: Decimal
    paid: Decimal
    missing: Decimal
    coming: Decimal
    coming_to: str | None
    is_overdue: bool
    parts: list[tuple[Invoice, Decimal]]


def worth_of(part: Share, currency: str) -> Decimal:
    """The part's worth: amount x received / asked, at most the amount, rounded down."""
    received_sats = min(part.received_sats, part.asked_sats)
    return of_minor(
        to_minor(part.amount, currency) * received_sats // part.asked_sats, currency
    )


def totals_of(
    amount: Decimal, currency: str, parts: Sequence[Share], dust_limit_sats: int
) -> Totals:
    """The state of a bill with these parts, of which the last one came last. Pure.

    It is paid when nothing is missing, or less than a wallet can send (`dust_limit_sats`) at the
    price of the invoice that brought the last part.
    """
    worths = [worth_of(part, currency) for part in parts]
    paid = sum(worths, of_minor(0, currency))
    missing = amount - paid
    beyond_sats = _beyond_sats(-missing, parts, worths)
    brought = [part for part in parts if part.received_sats]
    if not brought:
        return Totals(paid, False, beyond_sats)
    is_paid = (
        missing <= 0
        or (sats_for(missing, brought[-1].price) or dust_limit_sats) < dust_limit_sats
    )
    return Totals(paid, is_paid, beyond_sats)


def _beyond_sats(
    excess: Decimal, parts: Sequence[Share], worths: Sequence[Decimal]
) -> list[int]:
    """Each part's satoshis of the excess, at its own price: it is the last parts', from the last
    back, of each at most its worth.
    """
    found = []
    for part, worth in zip(reversed(parts), reversed(worths), strict=True):
        beyond = max(Decimal(0), min(excess, worth))
        excess -= beyond
        found.append((sats_for(beyond, part.price) or 0) if beyond else 0)
    return found[::-1]


def related_ids(db: Database, rows: Iterable[Invoice]) -> set[str]:
    """The paid invoices of the bills of these: what is too much of one depends on the others."""
    bills = {row.bill_id for row in rows if row.bill_id}
    return {paid.id for id in bills for paid in db.rows(queries.PAID_INVOICES, id=id)}


def recount(db: Database, row: Invoice, now: datetime) -> int:
    """Counts the bill of this invoice again; returns what the invoice brought beyond it, in sats.

    Called behind the lock of the merchant's balance, in the transaction of the change. A bill that
    has ended stays as it was then.
    """
    if row.bill_id is None:
        return 0
    bill = db.only(queries.LOCKED, id=row.bill_id)
    rows = db.rows(queries.INVOICES, id=row.bill_id)
    if bill.status == BillStatus.ENDED:
        return 0
    parts = [_share_of(one) for one in rows]
    found = totals_of(
        stored_amount(bill.amount), bill.currency, parts, dust_limit_of(row.script)
    )
    status = BillStatus.PAID if found.is_paid else BillStatus.OPEN
    db.run(
        queries.STAND,
        id=bill.id,
        paid=str(found.paid),
        status=status,
        paid_at=(bill.paid_at or to_ms(now)) if found.is_paid else None,
        from_status=bill.status,
    )
    if status != bill.status:
        told = BillKind.PAID if found.is_paid else BillKind.REOPENED
        publish_resource(db, RESOURCE, bill.id, told, now)
        send_later(db, bill, {"paid": to_ms(now)} if found.is_paid else {})
    beyond_sats = {
        one.id: sats for one, sats in zip(rows, found.beyond_sats, strict=True)
    }
    return beyond_sats.get(row.id, 0)


def due_of(db: Database, bill: Bill, now: datetime) -> Due:
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
    is_overdue = bill.due_at < to_ms(now)
    return Due(amount, paid, missing, coming, coming_to, is_overdue, parts)


def _share_of(row: Invoice) -> Share:
    """Its confirmed satoshis count; those of a canceled invoice only once they are accepted."""
    sats = (
        0
        if row.status == InvoiceStatus.CANCELED
        else row.received_sats - row.unconfirmed_sats
    )
    return Share(asked_of(row).amount, row.amount_sats, sats, price_of(row))


HOOK = hooks.InvoiceSums(related_ids=related_ids, recount=recount)
