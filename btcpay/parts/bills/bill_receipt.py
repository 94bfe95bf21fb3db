"""Gives each paid bill a receipt number: the lowest one among its invoices."""

from collections.abc import Sequence
from typing import NamedTuple

from btcpay.invoices.receipt_numbers import give_receipt_numbers
from btcpay.parts.bills import queries
from btcpay.parts.bills.models import Bill, BillStatus
from btcpay.values.money import Tax, stored_amount, tax_in
from storage.database import Database
from storage.models import Invoice


class BillReceipt(NamedTuple):
    """A bill's receipt number, and the tax that its amount includes (None if untaxed)."""

    number: int
    tax: Tax | None


def give_number(db: Database, bill_id: str, rows: Sequence[Invoice]) -> None:
    """Gives a receipt number to a bill that becomes paid, unless the bill has one.

    The receipt number of a bill is the lowest number of its invoices. Usually one of
    them has got a number when it became paid. If the bill was paid by late or
    incomplete payments alone, no invoice has a number. Then the last invoice of `rows`
    gets one. `rows` are the bill's invoices that have received something.

    Call this function in the transaction that stores the bill's status, while the
    merchant's balance is locked.
    """
    if db.get_or_none(queries.RECEIPT, id=bill_id):
        return
    row = rows[-1]
    receipt = give_receipt_numbers(db, [row])[row.id]
    db.run(
        queries.GIVE_RECEIPT,
        id=row.id,
        receipt_number=receipt.number,
        tax_percent=receipt.tax_percent,
    )


def receipt_of(db: Database, bill: Bill) -> BillReceipt | None:
    """Returns the receipt number and the tax of a paid bill.

    Returns None if the bill is not paid, or if none of its invoices has a receipt
    number. Raises BadRow if a stored number is invalid.
    """
    if bill.status != BillStatus.PAID:
        return None
    row = db.get_or_none(queries.RECEIPT, id=bill.id)
    if row is None:
        return None
    tax = None
    if row.tax_percent is not None:
        percent = stored_amount(row.tax_percent)
        tax = tax_in(stored_amount(bill.amount), bill.currency, percent)
    return BillReceipt(row.receipt_number, tax)
