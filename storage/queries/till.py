"""The till: what a press of its button made, and how the invoice before stands."""

from typing import Any

from peewee import Expression, fn

from storage.database import slot
from storage.models import Invoice, Output

_OWN = (Invoice.id == slot("id")) & (Invoice.merchant_id == slot("merchant_id"))


def _has_output(*conditions: Expression) -> Any:
    outputs = Output.select(Output.txid).where(Output.invoice_id == Invoice.id, *conditions)
    return fn.EXISTS(outputs)


# Still to be paid, and nothing has ever come to it: after that the next press is somebody else's.
UNTOUCHED = Invoice.select(Invoice.amount_usd_quote, Invoice.description).where(
    _OWN & (Invoice.status == "open") & (Invoice.expires_at > slot("now")) & ~_has_output()
)
LAST = Invoice.select(
    Invoice.id,
    Invoice.amount_usd_quote,
    Invoice.status,
    _has_output(Output.vanished_at.is_null()).alias("has_come"),
).where(_OWN)
