"""A merchant's links as their pages show them: page by page, with what came through each.

A page begins below the row that the last one ended with, by its time and its number: whatever is
made meanwhile, none is shown twice and none is left out.
"""

from typing import Any

from peewee import SQL, Expression, Field, Model, Select, Tuple, fn

from storage.database import slot
from storage.models import Invoice, PaymentLink

MOST_COUNTED = 1000  # of a link's invoices: an index is read so far and no further


def _count(*conditions: Expression) -> Any:
    """How many of a link's invoices are so, at most MOST_COUNTED."""
    of_link = Invoice.payment_link_id == PaymentLink.id
    found = Invoice.select(Invoice.payment_link_id).where(of_link, *conditions).limit(MOST_COUNTED)
    return Select([found.alias("counted")], [fn.COUNT(SQL("*"))])


_OWN = PaymentLink.select(
    PaymentLink,
    _count().alias("invoices"),
    _count(Invoice.status == "paid").alias("paid"),
).where(PaymentLink.merchant_id == slot("merchant_id"))


def _page(query: Select, model: type[Model], below: bool) -> Select:
    """The newest rows first; `below` a row, those that are older."""
    moment: Field = model.created_at
    seq: Field = model.seq
    if below:
        query = query.where(Tuple(moment, seq) < Tuple(slot("created_at"), slot("seq")))
    return query.order_by(moment.desc(), seq.desc()).limit(slot("limit"))


LINKS, LINKS_BELOW = (_page(_OWN, PaymentLink, below) for below in (False, True))
LINK = _OWN.where(PaymentLink.id == slot("id"))

_INVOICES = Invoice.select(
    Invoice.seq,
    Invoice.id,
    Invoice.status,
    Invoice.amount_usd_quote,
    Invoice.amount_sats,
    Invoice.created_at,
).where(Invoice.payment_link_id == slot("payment_link_id"))
INVOICES, INVOICES_BELOW = (_page(_INVOICES, Invoice, below) for below in (False, True))
