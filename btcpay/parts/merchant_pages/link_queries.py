"""Queries for a merchant's payment links, each with the counts of its invoices."""

from peewee import Expression, Select

from btcpay.values.statuses import InvoiceStatus
from storage.models import Invoice, PaymentLink
from storage.queries.lists import keyset
from storage.statement import count_of, eq, rows_as

MOST_COUNTED = 500  # the maximum count of a link's invoices; counting more takes long


def _count(*conditions: Expression) -> Select:
    """Returns a query that counts the link's invoices that fulfil these conditions.

    The result is never more than MOST_COUNTED.
    """
    of_link = Invoice.payment_link_id == PaymentLink.id
    query = Invoice.select(Invoice.payment_link_id).where(of_link, *conditions)
    return count_of(query, MOST_COUNTED)


_OWN_LINK = eq(PaymentLink.merchant_id)


class ListedLink(PaymentLink):
    """A link with the numbers of its invoices, and of those that are paid."""

    invoices: int
    paid: int


_LISTED_LINKS = rows_as(
    ListedLink,
    PaymentLink.select(
        PaymentLink,
        _count().alias("invoices"),
        _count(Invoice.status == InvoiceStatus.PAID).alias("paid"),
    ).where(_OWN_LINK),
)
LINKS = keyset.older(_LISTED_LINKS, PaymentLink)
LINK_PLACE = keyset.position_query(PaymentLink).where(_OWN_LINK)
LINK = _LISTED_LINKS.where(eq(PaymentLink.id))
