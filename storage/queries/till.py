"""The till: what a press of its button made, and how the invoice before stands."""

from typing import Any

from peewee import Expression, fn

from storage.database import slot
from storage.models import Invoice, Output

_OWN = (Invoice.id == slot("id")) & (Invoice.merchant_id == slot("merchant_id"))


def has_output(*conditions: Expression) -> Any:
    """Whether an output like this is known to an invoice's address."""
    outputs = Output.select(Output.txid).where(Output.invoice_id == Invoice.id, *conditions)
    return fn.EXISTS(outputs)


# Money that is there or on its way.
HAS_COME = has_output(Output.vanished_at.is_null()).alias("has_come")

# Still to be paid, and nothing has ever come to it: after that the next press is somebody else's.
UNTOUCHED = Invoice.select(Invoice.id).where(
    _OWN & (Invoice.status == "open") & (Invoice.expires_at > slot("now")) & ~has_output()
)
LAST = Invoice.select(Invoice.id, Invoice.amount_usd_quote, Invoice.status, HAS_COME).where(_OWN)
