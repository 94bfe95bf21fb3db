"""Sums of an invoice: what came, what went back, and what a refund is of if nobody says it."""

from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Literal, NamedTuple, cast

from btcpay.parts.refunds import queries
from btcpay.parts.refunds.models import Refund
from btcpay.values.errors import Refused
from btcpay.values.money import MAX_MONEY_SATS, SATS_PER_BTC
from btcpay.values.statuses import InvoiceStatus, RefundStatus
from storage.database import Database
from storage.models import Invoice
from storage.queries import attentions

# An invoice's need of attention: nothing goes back meanwhile, unless its sum is said.
SENT_TWICE = "refunded_twice"
Basis = Literal["excess", "all"]


class Default(NamedTuple):
    """The sum that nobody said: what is left of the excess, or of all that came.

    0 where the refunds that were made are as much as that: a second press promises nothing more.
    """

    basis: Basis
    left_sats: int


def default_of(invoice: Invoice, came_sats: int, refunds: Sequence[Refund]) -> Default:
    """The default of an invoice with these `refunds`, the oldest first.

    The first time it is the excess of a paid invoice, or where there is none all that came. Later
    ones are of the same, whatever has come or gone since, and though the first was canceled.
    """
    excess_sats = (
        max(0, came_sats - invoice.amount_sats)
        if invoice.status == InvoiceStatus.PAID
        else 0
    )
    first = next((row.basis for row in refunds if row.basis), None)
    basis = cast(Basis, first or ("excess" if excess_sats else "all"))
    owed_sats = excess_sats if basis == "excess" else came_sats
    return Default(basis, max(0, owed_sats - total_sats_of(refunds)))


def came_sats_of(db: Database, invoice_id: str) -> int:
    """Satoshis that blocks have brought."""
    return db.only(queries.CAME, invoice_id=invoice_id)[0]


def refunds_of(db: Database, invoice_id: str) -> list[Refund]:
    """The oldest first."""
    return db.rows(queries.OF_INVOICE, invoice_id=invoice_id)


def total_sats_of(refunds: Sequence[Refund]) -> int:
    """Satoshis of those that are not canceled."""
    return sum(
        row.amount_sats for row in refunds if row.status != RefundStatus.CANCELED
    )


def is_sent_twice(db: Database, invoice_id: str) -> bool:
    """True while the invoice needs attention since the same refund was sent twice."""
    attention = db.row(attentions.OF_INVOICE, invoice_id=invoice_id)
    return attention is not None and attention.reason == SENT_TWICE


def sats_at(amount: Decimal, price: Decimal) -> int:
    """Satoshis at `price` a bitcoin, rounded down. Raises Refused (`amount`) beyond all coins."""
    sats = int((amount / price * SATS_PER_BTC).to_integral_value(ROUND_DOWN))
    if sats > MAX_MONEY_SATS:
        raise Refused("amount", "that is more bitcoin than there is")
    return sats
