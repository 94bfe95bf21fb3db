"""A merchant's links as their pages show them: page by page, with what came through each.

A page begins below the row that the last one ended with, by its time and its number: whatever is
made meanwhile, none is shown twice and none is left out.
"""

from typing import Any

from peewee import SQL, Expression, Select, Tuple, fn

from storage.database import slot
from storage.models import Invoice, PaymentLink
from storage.queries.till import HAS_COME

ABOVE_ALL = (2**62, 2**62)  # below it is the newest row of all
MOST_COUNTED = 1000  # of a link's invoices: an index is read so far and no further


def _count(*conditions: Expression) -> Any:
    """How many of a link's invoices are so, at most MOST_COUNTED."""
    of_link = Invoice.payment_link_id == PaymentLink.id
    found = Invoice.select(Invoice.payment_link_id).where(of_link, *conditions).limit(MOST_COUNTED)
    return Select([found.alias("counted")], [fn.COUNT(SQL("*"))])


def _page(query: Select, model: Any) -> Select:
    """The newest rows below the one of this time and number."""
    columns = (model.created_at, model.seq)
    below = Tuple(*columns) < Tuple(slot("created_at"), slot("seq"))
    return query.where(below).order_by(*(one.desc() for one in columns)).limit(slot("limit"))


_OWN = PaymentLink.select(
    PaymentLink,
    _count().alias("invoices"),
    _count(Invoice.status == "paid").alias("paid"),
).where(PaymentLink.merchant_id == slot("merchant_id"))
LINKS = _page(_OWN, PaymentLink)
LINK = _OWN.where(PaymentLink.id == slot("id"))

_INVOICES = Invoice.select(
    Invoice.seq,
    Invoice.id,
    Invoice.status,
    Invoice.amount_usd_quote,
    Invoice.amount_sats,
    Invoice.created_at,
    HAS_COME,
).where(Invoice.payment_link_id == slot("payment_link_id"))
INVOICES = _page(_INVOICES, Invoice)
