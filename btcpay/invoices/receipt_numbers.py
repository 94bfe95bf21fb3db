"""Gives paid invoices their receipt numbers: 1, 2, 3 and so on for each merchant."""

from collections.abc import Sequence
from typing import NamedTuple

from storage import at_once
from storage.database import Database, Values
from storage.models import Invoice
from storage.queries import merchants
from storage.statement import replace


class ReceiptNumber(NamedTuple):
    """An invoice's receipt number, and the tax rate on its receipt (None if untaxed)."""

    number: int
    tax_percent: str | None


def give_receipt_numbers(
    db: Database, rows: Sequence[Invoice]
) -> dict[str, ReceiptNumber]:
    """Assigns receipt numbers to invoices that become paid. Returns them by invoice id.

    An invoice that was paid before, and reopened by a reorganisation, keeps its number
    and its tax rate. The other invoices get the next numbers of their merchant, in the
    order of `rows`, and the merchant's present tax rate.

    This function does not store the numbers. Call it in the database transaction that
    stores them, after you lock the merchants' balances. If that transaction fails, the
    next one uses the same numbers again, so no number is skipped.
    """
    rows_without_number = [row for row in rows if row.receipt_number is None]
    merchant_ids = sorted({row.merchant_id for row in rows_without_number})
    keys: list[Values] = [{"merchant_id": id} for id in merchant_ids]
    last_receipts = at_once.rows(db, merchants.LAST_RECEIPT, keys)
    last_by_merchant = {last.id: last for last in last_receipts}
    receipts: dict[str, ReceiptNumber] = {}
    for row in rows:
        if row.receipt_number is not None:
            receipts[row.id] = ReceiptNumber(row.receipt_number, row.tax_percent)
            continue
        last = last_by_merchant[row.merchant_id]
        number = last.number + 1
        receipts[row.id] = ReceiptNumber(number, last.tax_percent)
        last_by_merchant[row.merchant_id] = replace(last, number=number)
    return receipts
