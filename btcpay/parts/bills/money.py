"""Computes how much of a bill is paid.

The sums are computed again whenever one of the bill's invoices changes.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from btcpay import hooks
from btcpay.merchants.account import dust_limit_of
from btcpay.notify.publish import publish_resource
from btcpay.parts.bills import queries
from btcpay.parts.bills.bill_receipt import give_number
from btcpay.parts.bills.kinds import RESOURCE, BillKind
from btcpay.parts.bills.mail import send_later
from btcpay.parts.bills.models import Bill, BillStatus
from btcpay.values.money import (
    amount_due,
    of_minor,
    price_of,
    sats_for,
    stored_amount,
    to_minor,
)
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import to_ms
from storage.database import Database
from storage.models import Invoice


class Share(NamedTuple):
    """The part of a bill that one invoice requests, and how much the invoice has received.

    - `amount`: the requested amount in the bill's currency.
    - `asked_sats`: the same in satoshis.
    - `received_sats`: the sum of the payments that count for the invoice.
    - `price`: the price of one bitcoin in the bill's currency, as stored in the
      invoice.
    """

    amount: Decimal
    asked_sats: int
    received_sats: int
    price: Decimal


class Totals(NamedTuple):
    """The sums of a bill.

    - `paid`: the paid amount in the bill's currency. It may exceed the bill's amount.
    - `overpaid_sats`: how many satoshis of each share exceed the bill's amount. The list
      has the order of the shares.
    """

    paid: Decimal
    is_paid: bool
    overpaid_sats: list[int]


class Due(NamedTuple):
    """The state of a bill's payment. All amounts are in the bill's currency.

    - `paid`: the amount of the confirmed payments.
    - `coming`: the amount of the unconfirmed payments.
    - `coming_to`: the id of the last invoice with an unconfirmed payment; None if there
      is none.
    - `missing`: the rest of the bill's amount, after both kinds of payments.
    - `parts`: the bill's invoices, each with its paid amount.
    """

    amount: Decimal
    paid: Decimal
    missing: Decimal
    coming: Decimal
    coming_to: str | None
    is_overdue: bool
    parts: list[tuple[Invoice, Decimal]]


def worth_of(share: Share, currency: str) -> Decimal:
    """Returns the paid amount of a share, rounded down to the currency's smallest unit.

    The paid amount is the share's amount times the fraction of its satoshis that was
    received. What exceeds the share's amount is not counted.
    """
    received_sats = min(share.received_sats, share.asked_sats)
    amount_minor = to_minor(share.amount, currency)
    return of_minor(amount_minor * received_sats // share.asked_sats, currency)


def totals_of(
    amount: Decimal,
    currency: str,
    shares: Sequence[Share],
    dust_limit_sats: int,
) -> Totals:
    """Returns the sums of a bill from its shares.

    `shares` are in the order in which their invoices were closed; open ones come last.

    The bill is paid if something was received, and the missing amount is either 0 or
    too small for wallets to send (below `dust_limit_sats`). The missing amount is
    converted to satoshis at the price of the last share that has received something.
    """
    worths = [worth_of(share, currency) for share in shares]
    paid = sum(worths, of_minor(0, currency))
    return Totals(
        paid=paid,
        is_paid=_is_paid(amount - paid, shares, dust_limit_sats),
        overpaid_sats=_overpaid_sats(paid - amount, shares, worths),
    )


def _is_paid(missing: Decimal, shares: Sequence[Share], dust_limit_sats: int) -> bool:
    """True if the bill is paid, by the rule in `totals_of`.

    `missing` is the bill's amount minus the paid amount.
    """
    paying_shares = [share for share in shares if share.received_sats]
    if not paying_shares:
        return False
    if missing <= 0:
        return True
    missing_sats = sats_for(missing, paying_shares[-1].price)
    if missing_sats is None:  # more than all bitcoin
        return False
    return missing_sats < dust_limit_sats


def _overpaid_sats(
    excess: Decimal,
    shares: Sequence[Share],
    worths: Sequence[Decimal],
) -> list[int]:
    """Returns how many satoshis of each share are excess, in the order of `shares`.

    `excess` is the amount that was paid above the bill's amount, in the bill's currency;
    it is negative if the bill is not fully paid. `worths` are the paid amounts of the
    shares. The excess is taken from the last share first, at most its paid amount, then
    from the share before it, and so on. The amount taken from a share is converted to
    satoshis at the share's price.
    """
    newest_first: list[int] = []
    for share, worth in zip(reversed(shares), reversed(worths), strict=True):
        overpaid = max(Decimal(0), min(excess, worth))
        excess -= overpaid
        sats = 0
        if overpaid:
            sats = sats_for(overpaid, share.price) or 0
        newest_first.append(sats)
    return list(reversed(newest_first))


def related_ids(db: Database, rows: Iterable[Invoice]) -> set[str]:
    """Returns the ids of all paid invoices that belong to the same bills as `rows`.

    The excess of an invoice depends on the other invoices of its bill.
    """
    ids: set[str] = set()
    for bill_id in {row.bill_id for row in rows if row.bill_id}:
        ids.update(row.id for row in db.rows(queries.PAID_INVOICES, id=bill_id))
    return ids


def recount(db: Database, row: Invoice, now: datetime) -> int:
    """Computes the sums of the invoice's bill again, and stores them.

    Returns how many satoshis of this invoice exceed the bill's amount. Returns 0 and
    stores nothing if the invoice belongs to no bill, or if the bill has ended.

    Call this function in the database transaction that changes the invoice, while the
    merchant's balance is locked.
    """
    if row.bill_id is None:
        return 0
    bill = db.get(queries.LOCKED, id=row.bill_id)
    if bill.status == BillStatus.ENDED:
        return 0
    invoices = db.rows(queries.INVOICES, id=bill.id)
    totals = totals_of(
        amount=stored_amount(bill.amount),
        currency=bill.currency,
        shares=[_share_of(invoice) for invoice in invoices],
        dust_limit_sats=dust_limit_of(row.script),
    )
    becomes_paid = totals.is_paid and bill.status == BillStatus.OPEN
    if becomes_paid:
        paying_invoices = [each for each in invoices if _share_of(each).received_sats]
        give_number(db, bill.id, paying_invoices)
    _store(db, bill, totals, now)
    ids = [invoice.id for invoice in invoices]
    overpaid_sats_by_id = dict(zip(ids, totals.overpaid_sats, strict=True))
    return overpaid_sats_by_id.get(row.id, 0)


def _store(db: Database, bill: Bill, totals: Totals, now: datetime) -> None:
    """Stores the sums and the status. If the status changes, publishes an event."""
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
    """Returns the state of the bill's payment. Raises BadRow if a stored amount is malformed."""
    amount = stored_amount(bill.amount)
    paid = stored_amount(bill.paid)
    rows = db.rows(queries.INVOICES, id=bill.id)
    parts = [(row, worth_of(_share_of(row), bill.currency)) for row in rows]
    coming = of_minor(0, bill.currency)
    coming_to = None
    for row, confirmed_worth in parts:
        if row.status == InvoiceStatus.OPEN and row.unconfirmed_sats:
            with_unconfirmed = _share_of(row)._replace(received_sats=row.received_sats)
            coming += worth_of(with_unconfirmed, bill.currency) - confirmed_worth
            coming_to = row.id
    return Due(
        amount=amount,
        paid=paid,
        missing=max(amount - paid - coming, Decimal(0)),
        coming=coming,
        coming_to=coming_to,
        is_overdue=bill.due_ms < to_ms(now),
        parts=parts,
    )


def _share_of(row: Invoice) -> Share:
    """Returns the invoice's share of its bill, which counts confirmed satoshis only.

    A canceled invoice counts as 0. If the merchant accepts its payments, the invoice is
    no longer canceled.
    """
    confirmed_sats = row.received_sats - row.unconfirmed_sats
    if row.status == InvoiceStatus.CANCELED:
        confirmed_sats = 0
    return Share(
        amount=amount_due(row).amount,
        asked_sats=row.amount_sats,
        received_sats=confirmed_sats,
        price=price_of(row),
    )


HOOK = hooks.InvoiceSums(related_ids=related_ids, recount=recount)
