"""The kinds of events that tell of bills, and what they show."""

from decimal import Decimal
from typing import Any

import orjson

from btcpay.bills import queries
from btcpay.notify.kinds import TIME, Kind, Resource, optional, text
from btcpay.values.money import rounded, stored_amount
from storage.models import Bill
from storage.statement import blank


class BillKind(Kind):
    CREATED = ("bill.created", "A bill was made: by the owner, or for the next period of a series.")
    PAID = ("bill.paid", "The bill is paid: nothing is missing, or less than a wallet can send.")
    REOPENED = (
        "bill.reopened",
        "The bill was paid and is open again: a reorganisation of the chain took a payment back.",
    )
    ENDED = ("bill.ended", "The owner ended the bill before it was paid.")


def _number(description: str, example: int) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "description": description, "examples": [example]}


PROPERTIES: dict[str, Any] = {
    "object": {"type": "string", "const": "bill", "description": "Always `bill`."},
    "id": text("The bill's id, which opens its page.", f"bil_{'0' * 24}"),
    "status": text("The state of the bill.", "open", enum=["open", "paid", "ended"]),
    "amount": _number("The amount that the customer owes, in `currency`.", 100),
    "currency": text("A code of ISO 4217.", "EUR"),
    "paid": _number("The worth of what its invoices received, each at its own price.", 50),
    "missing": _number("The rest of the amount.", 50),
    "reference": optional("The merchant's own number.", "2026-1041"),
    "description": optional("A memo, which the customer sees.", "Rent, December"),
    "customer_email": optional("The customer's address, until it is erased.", "ada@example.com"),
    "due_at": text("The last millisecond of its last day.", "2026-12-11T22:59:59.999Z", **TIME),
    "every": optional("The period of its series; null for a single bill.", "month"),
    "series_id": optional("The first bill of its series.", f"bil_{'0' * 24}"),
    "bill_url": text("Its page.", "https://pay.example.com/bill/bil_...", format="uri"),
    "created_at": text("When it was made.", "2026-11-27T21:06:12.000Z", **TIME),
    "paid_at": optional("When it was paid.", "2026-11-28T09:00:00.000Z", **TIME),
}


def _sums(row: Bill) -> dict[str, orjson.Fragment]:
    """Amount, paid and missing, with all decimals of the currency. Raises BadRow."""
    amount, paid = stored_amount(row.amount), stored_amount(row.paid)
    missing = Decimal(0) if row.status == "paid" else max(amount - paid, Decimal(0))
    sums = {"amount": amount, "paid": paid, "missing": missing}
    return {name: orjson.Fragment(f"{rounded(sum, row.currency):f}") for name, sum in sums.items()}


def _sample(kind: Kind, at_ms: int) -> Bill:
    is_paid = kind == BillKind.PAID
    return blank(
        Bill,
        id=f"bil_{'0' * 24}",
        status="paid" if is_paid else "ended" if kind == BillKind.ENDED else "open",
        amount="25",
        currency="USD",
        paid="25" if is_paid else "0",
        description="A test",
        created_at=at_ms,
        due_at=at_ms,
        paid_at=at_ms if is_paid else None,
    )


STATE = ("status", "paid", "paid_at")
RESOURCE = Resource("bill", "bil", BillKind, queries.BY_ID, STATE, PROPERTIES, _sample, _sums)
