"""A merchant's links as their pages show them, with what came through each."""

from typing import Any

from peewee import SQL, Expression, Select, fn

from storage.models import Invoice, PaymentLink
from storage.queries.invoices import CAME_SATS
from storage.queries.lists import keyset
from storage.statement import shaped, slot

MOST_COUNTED = 500  # of a link's invoices: an index is read so far and no further


def _count(*conditions: Expression) -> Any:
    """The number of a link's invoices that meet the condition, at most MOST_COUNTED."""
    of_link = Invoice.payment_link_id == PaymentLink.id
    found = Invoice.select(Invoice.payment_link_id).where(of_link, *conditions).limit(MOST_COUNTED)
    return Select([found.alias("counted")], [fn.COUNT(SQL("*"))])


_IS_OWN = PaymentLink.merchant_id == slot("merchant_id")


class Listed(PaymentLink):
    invoices: int
    paid: int


_OWN = shaped(
    Listed,
    PaymentLink.select(
        PaymentLink, _count().alias("invoices"), _count(Invoice.status == "paid").alias("paid")
    ).where(_IS_OWN),
)
LINKS = keyset.older(_OWN, PaymentLink)
LINK_PLACE = keyset.place_of(PaymentLink).where(_IS_OWN)
LINK = _OWN.where(PaymentLink.id == slot("id"))

_OF_LINK = Invoice.payment_link_id == slot("payment_link_id")
_INVOICES = Invoice.select(
    Invoice.id,
    Invoice.status,
    *Invoice.ASKED,
    Invoice.amount_sats,
    Invoice.created_at,
    CAME_SATS.alias("received_sats"),
).where(_OF_LINK)
INVOICES = keyset.older(_INVOICES, Invoice)
INVOICE_PLACE = keyset.place_of(Invoice).where(_OF_LINK)
