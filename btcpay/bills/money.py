"""Money moves a bill: what its invoices received is counted again whenever that has changed."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from btcpay.bills import queries
from btcpay.bills.kinds import BillKind
from btcpay.bills.news import send_later, tell
from btcpay.bills.sums import Part, Standing, counts, standing
from btcpay.merchants.account import least_sats_of
from btcpay.values.money import asked_of, of_minor, price_of, stored_amount
from btcpay.values.times import to_ms
from storage.database import Database
from storage.models import Bill, Invoice


def heard(db: Database, row: Invoice, now: datetime) -> int:
    """Counts the bill of this invoice again; returns what the invoice brought beyond it, in sats.

    Called behind the lock of the merchant's balance, in the transaction of the change. A bill that
    has ended stays as it was then.
    """
    if row.bill_id is None:
        return 0
    bill, rows = db.only(queries.LOCKED, id=row.bill_id), db.rows(queries.INVOICES, id=row.bill_id)
    if bill.status == "ended":
        return 0
    found = standing_of(bill, rows, least_sats_of(row.script))
    status = "paid" if found.is_paid else "open"
    db.run(
        queries.STAND,
        id=bill.id,
        paid=str(found.paid),
        status=status,
        paid_at=(bill.paid_at or to_ms(now)) if found.is_paid else None,
        from_status=bill.status,
    )
    if status != bill.status:
        tell(db, bill.id, BillKind.PAID if found.is_paid else BillKind.REOPENED, now)
        send_later(db, bill, {"paid": to_ms(now)} if found.is_paid else {})
    brought = [one.id for one in rows if confirmed_sats(one)]
    return found.beyond_sats if brought[-1:] == [row.id] else 0


def standing_of(bill: Bill, rows: Sequence[Invoice], least_sats: int) -> Standing:
    parts = [_part(row, confirmed_sats(row)) for row in rows]
    return standing(stored_amount(bill.amount), bill.currency, parts, least_sats)


def confirmed_sats(row: Invoice) -> int:
    """Confirmed satoshis; those of a canceled invoice count only once they are accepted."""
    return 0 if row.status == "canceled" else row.received_sats - row.unconfirmed_sats


def coming(bill: Bill, rows: Sequence[Invoice]) -> tuple[Decimal, str | None]:
    """The sum that is on its way to the bill, and the last invoice to which it comes."""
    waiting = [row for row in rows if row.status == "open" and row.unconfirmed_sats]
    parts = ((_part(row, row.received_sats), _part(row, confirmed_sats(row))) for row in waiting)
    more = (counts(whole, bill.currency) - counts(part, bill.currency) for whole, part in parts)
    return sum(more, of_minor(0, bill.currency)), waiting[-1].id if waiting else None


def worth_of(bill: Bill, row: Invoice) -> Decimal:
    """The worth that one of its invoices adds to the bill."""
    return counts(_part(row, confirmed_sats(row)), bill.currency)


def _part(row: Invoice, sats: int) -> Part:
    return Part(asked_of(row).amount, row.amount_sats, sats, price_of(row))
