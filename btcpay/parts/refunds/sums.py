"""Sums of an invoice: what came, what went back, and a refund's default sum."""

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

# While an invoice needs attention for this, a refund is created only if its sum is said.
SENT_TWICE = "refunded_twice"
Basis = Literal["excess", "all"]


class Default(NamedTuple):
    """A refund's sum if nobody says it: what is left of the excess, or of all that came.

    It is 0 if earlier refunds are as much as that, so that a second press promises nothing more.
    """

    basis: Basis
    left_sats: int


def default_of(invoice: Invoice, came_sats: int, refunds: Sequence[Refund]) -> Default:
    """The default of an invoice with these `refunds`, the oldest first.

    The first refund is of a paid invoice's excess; if there is none, of all that came. Later ones
    have the same basis, whatever has come or gone since, even if the first was canceled.
    """
    excess_sats = 0
    if invoice.status == InvoiceStatus.PAID:
        excess_sats = max(0, came_sats - invoice.amount_sats)
    basis: Basis = "excess" if excess_sats else "all"
    for row in refunds:
        if row.basis:
            basis = cast(Basis, row.basis)
            break
    owed_sats = excess_sats if basis == "excess" else came_sats
    return Default(basis, max(0, owed_sats - total_sats_of(refunds)))


def came_sats_of(db: Database, invoice_id: str) -> int:
    """Satoshis that blocks have brought to the invoice and that may go back."""
    return db.only(queries.CAME, invoice_id=invoice_id)[0]


def refunds_of(db: Database, invoice_id: str) -> list[Refund]:
    """The refunds of an invoice, the oldest first."""
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
