"""Invoices and payments as the command line lists them: of all merchants, with what came."""

from typing import Any

from peewee import Case, fn

from storage.database import slot
from storage.models import Attention, Invoice, Merchant, Output, Payment

# Confirmed or waiting, in time or not: for people, not for settlement.
_CAME_SATS = Output.select(fn.COALESCE(fn.SUM(Output.amount_sats).cast("BIGINT"), 0)).where(
    (Output.invoice_id == Invoice.id) & Output.vanished_at.is_null()
)
_MISSING_SATS = Case(
    None,
    [((Invoice.status != "paid") & (Invoice.amount_sats > _CAME_SATS),
      Invoice.amount_sats - _CAME_SATS)],
    0,
)  # fmt: skip
_LISTED = Invoice.select(
    Invoice,
    Merchant.name.alias("merchant"),
    _CAME_SATS.alias("received_sats"),
    _MISSING_SATS.alias("missing_sats"),
).join(Merchant, on=(Merchant.id == Invoice.merchant_id))


def _newest(of: Any) -> tuple[Any, Any]:
    return of.created_at.desc(), of.seq.desc()


# Chosen first, so that sums are made only for the invoices that are listed.
_Any = Invoice.alias()
_CHOSEN = _Any.select(_Any.seq).order_by(*_newest(_Any)).limit(slot("limit"))
ALL = _LISTED.where(Invoice.seq.in_(_CHOSEN)).order_by(*_newest(Invoice))
ALL_BY_STATUS = _LISTED.where(
    Invoice.seq.in_(_CHOSEN.where(_Any.status == slot("status")))
).order_by(*_newest(Invoice))
# What has waited longest first.
WANTING = (
    _LISTED.select_extend(Attention.reason, Attention.since_at)
    .join(Attention, on=(Attention.invoice_id == Invoice.id))
    .order_by(Attention.since_at, Attention.invoice_id)
    .limit(slot("limit"))
)

_PAYMENTS = (
    Payment.select(Payment, Merchant.name.alias("merchant"))
    .join(Merchant, on=(Merchant.id == Payment.merchant_id))
    .order_by(*_newest(Payment))
    .limit(slot("limit"))
)
PAYMENTS_OF_MERCHANT = _PAYMENTS.where(Payment.merchant_id == slot("merchant_id"))
PAYMENTS_OF_INVOICE = _PAYMENTS.where(Payment.address_invoice_id == slot("invoice_id"))
