"""Gives paid invoices their receipt numbers: 1, 2, 3 and so on for each merchant."""

from collections.abc import Sequence
from typing import NamedTuple

from storage import at_once
from storage.database import Database, Values
from storage.models import Invoice
from storage.queries import merchants
from storage.statement import replace


class ReceiptNumber(NamedTuple):
    """An invoice's receipt number, and the tax rate that its receipt names, if any."""

    number: int
    tax_percent: str | None


def give_receipt_numbers(
    db: Database, rows: Sequence[Invoice]
) -> dict[str, ReceiptNumber]:
    """Returns the receipt numbers of invoices that become paid, by the invoice's id.

    An invoice that was paid before, and reopened by a reorganisation, keeps its number
    and its tax rate. The others get their merchant's next numbers, in the order of the
    rows, and its present rate. Call it after the balances were locked, in the
    transaction that stores the numbers. So none is left out if that transaction fails.
    """
    new_rows = [row for row in rows if row.receipt_number is None]
    merchant_ids = sorted({row.merchant_id for row in new_rows})
    keys: list[Values] = [{"merchant_id": id} for id in merchant_ids]
    last = {row.id: row for row in at_once.rows(db, merchants.LAST_RECEIPT, keys)}
    receipts: dict[str, ReceiptNumber] = {}
    for row in rows:
        if row.receipt_number is not None:
            receipts[row.id] = ReceiptNumber(row.receipt_number, row.tax_percent)
            continue
        previous = last[row.merchant_id]
        number = previous.number + 1
        receipts[row.id] = ReceiptNumber(number, previous.tax_percent)
        last[row.merchant_id] = replace(previous, number=number)
    return receipts
