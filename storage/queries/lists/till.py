"""The till: what a press of its button made, and how the invoice before stands."""

from peewee import fn

from storage.database import slot
from storage.models import Invoice, Output
from storage.queries.lists.listings import CAME_SATS

_OWN = (Invoice.id == slot("id")) & (Invoice.merchant_id == slot("merchant_id"))
# Still to be paid, and nothing has ever come to it: after that the next press is somebody else's.
UNTOUCHED = Invoice.select(Invoice.id).where(
    _OWN
    & (Invoice.status == "open")
    & (Invoice.expires_at > slot("now"))
    & ~fn.EXISTS(Output.select(Output.txid).where(Output.invoice_id == Invoice.id))
)
LAST = Invoice.select(
    Invoice.id,
    Invoice.amount_usd_quote,
    Invoice.amount_sats,
    Invoice.status,
    CAME_SATS.alias("received_sats"),
).where(_OWN)
