"""Sums of an invoice: the received sum, the refunds, and the default sum of a refund."""

from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Literal, NamedTuple, cast

from btcpay.parts.refunds import queries
from btcpay.parts.refunds.models import Refund
from btcpay.values.errors import ChangeRefused
from btcpay.values.money import (
    MAX_MONEY_SATS,
    SATS_PER_BTC,
    Money,
    round_money,
    stored_amount,
    value_of,
)
from btcpay.values.statuses import InvoiceStatus, RefundStatus
from storage.database import Database
from storage.models import Invoice
from storage.queries import attentions

# A reason why an invoice needs attention. While it applies to an invoice, a refund of the
# invoice is created only if the request states the sum.
SENT_TWICE = "refunded_twice"
Basis = Literal["excess", "all"]


class Default(NamedTuple):
    """The sum of a refund, if the request for the refund states no sum.

    - `basis`: "excess" is the sum that was paid above the invoice's amount, "all" is the
      whole sum that was received.
    - `left_sats`: the basis minus all earlier refunds that were not canceled. It is 0 if
      they have reached the basis, so that a repeated request creates no second refund.
    """

    basis: Basis
    left_sats: int


def default_of(invoice: Invoice, came_sats: int, refunds: Sequence[Refund]) -> Default:
    """Returns the sum of a refund of this invoice, if the request for it states no sum.

    `came_sats` is the received sum. `refunds` are the invoice's earlier refunds, oldest
    first.

    The basis is "excess" if the invoice is paid and has received more than its amount,
    else "all". But if an earlier refund has a basis, that basis is used again, even if
    that refund was canceled or the received sum has changed since.
    """
    excess_sats = 0
    if invoice.status == InvoiceStatus.PAID:
        excess_sats = max(0, came_sats - invoice.amount_sats)
    basis: Basis = "all"
    if excess_sats:
        basis = "excess"
    basis = _earlier_basis(refunds) or basis
    basis_sats = came_sats
    if basis == "excess":
        basis_sats = excess_sats
    return Default(basis, max(0, basis_sats - total_sats_of(refunds)))


def _earlier_basis(refunds: Sequence[Refund]) -> Basis | None:
    """Returns the basis of the first refund that has one; None if no refund has one."""
    for row in refunds:
        if row.basis:
            return cast(Basis, row.basis)
    return None


def came_sats_of(db: Database, invoice_id: str) -> int:
    """Returns the sum of the invoice's confirmed payments that can be refunded, in satoshis."""
    (came_sats,) = db.get(queries.CAME, invoice_id=invoice_id)
    return came_sats


def refunds_of(db: Database, invoice_id: str) -> list[queries.RefundWith]:
    """Returns the refunds of an invoice, oldest first."""
    return db.rows(queries.OF_INVOICE, invoice_id=invoice_id)


def total_sats_of(refunds: Sequence[Refund]) -> int:
    """Returns the sum of these refunds in satoshis. Canceled refunds are left out."""
    return sum(
        row.amount_sats for row in refunds if row.status != RefundStatus.CANCELED
    )


def is_sent_twice(db: Database, invoice_id: str) -> bool:
    """True if the invoice needs attention because one of its refunds was sent twice."""
    attention = db.get_or_none(attentions.OF_INVOICE, invoice_id=invoice_id)
    return attention is not None and attention.reason == SENT_TWICE


def worth_of(row: queries.RefundWith) -> Money | None:
    """Returns the value of a refund in a currency, for people to read.

    The value is the amount of money that the request for the refund stated. If it
    stated none, the value is computed at the invoice's exchange rate. Returns None if
    there is no exchange rate either. If another sum than the refund's was sent, returns
    the value of the sent sum.
    """
    sats = row.sent_sats or row.amount_sats
    if row.asked_amount is not None:
        currency = row.asked_currency or ""
        exact = stored_amount(row.asked_amount) * sats / row.amount_sats
        return Money(round_money(exact, currency), currency)
    if row.invoice_amount is not None:
        currency = row.invoice_currency or ""
        price = row.price
    else:  # the invoice has its amount in dollars only, or there is no invoice
        currency = "USD"
        price = row.price_usd
    if price is None:
        return None
    return Money(value_of(sats, stored_amount(price), currency), currency)


def sats_at(amount: Decimal, price: Decimal) -> int:
    """Converts an amount to satoshis, rounded down. `price` is the price of one bitcoin.

    Raises ChangeRefused with the code `amount` if the result is more than 21 million
    bitcoin.
    """
    sats = int((amount / price * SATS_PER_BTC).to_integral_value(ROUND_DOWN))
    if sats > MAX_MONEY_SATS:
        raise ChangeRefused("amount", "that is more bitcoin than there is")
    return sats
