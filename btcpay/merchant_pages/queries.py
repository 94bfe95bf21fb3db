"""A merchant's invoices, payments and links as their own pages list them, page by page, both ways.

A page begins after a row that is named by its time and its place in that time; the indexes on
merchant and time serve both ways. Sums are made only for rows that are shown.
"""

from typing import Any, NamedTuple, TypeVar

from peewee import JOIN, SQL, ColumnBase, Expression, Select, fn

from storage.models import Attention, Invoice, Output, Payment, PaymentLink
from storage.queries.blocks import is_given
from storage.queries.invoices import CAME_SATS, InvoiceWith
from storage.queries.lists import keyset
from storage.queries.payments import PaymentWith
from storage.statement import shaped, slot

Listed = type[Invoice] | type[Payment]
Q = TypeVar("Q", bound=Select)


class Texts(NamedTuple):
    """The columns that a search goes through."""

    id: str
    description: str | None
    reference: str | None
    customer_email: str | None
    customer_name: str | None
    customer_note: str | None
    amount_sats: int
    value: str | None  # of a payment at its receipt, in the currency beside it
    value_in: str
    amount_usd_quote: str
    amount: str | None
    currency: str
    created_at: int


_INVOICES = shaped(
    InvoiceWith,
    Invoice.select(
        Invoice.id,
        Invoice.status,
        Invoice.amount_sats,
        *Invoice.ASKED,
        Invoice.description,
        Invoice.reference,
        Invoice.tip,
        *Invoice.PERSONAL,
        Invoice.created_at,
        Invoice.covered_at,
        Attention.reason.alias("attention"),
        CAME_SATS.alias("received_sats"),
    ).join(Attention, JOIN.LEFT_OUTER, on=(Attention.invoice_id == Invoice.id)),
)
_OF_ADDRESS = Invoice.id == Payment.address_invoice_id
_PAYMENTS = shaped(
    PaymentWith,
    Payment.select(
        Payment.id,
        Payment.amount_sats,
        Payment.currency,
        Payment.value_at_receipt,
        Payment.tx_hash,
        Payment.created_at,
        Payment.address_invoice_id,
        Payment.invoice_id,
        Invoice.description,
        Invoice.reference,
        Invoice.tip,
        Invoice.status,
        Invoice.expires_at,
        Output.select(fn.MIN(Output.first_seen_at))
        .where(Output.payment_id == Payment.id)
        .alias("first_seen_at"),
    ).join(Invoice, on=_OF_ADDRESS),
)


def _own(model: type[Attention] | Listed) -> Any:
    return model.merchant_id == slot("merchant_id")


def _older(query: Q, model: Listed) -> Q:
    return keyset.older(query.where(_own(model)), model)


_OF_STATUS = Invoice.status == slot("status")
INVOICES = _older(_INVOICES, Invoice)
INVOICES_BY_STATUS = INVOICES.where(_OF_STATUS)
_SALES = shaped(
    InvoiceWith,
    Invoice.select(
        Invoice.id,
        Invoice.status,
        Invoice.amount_sats,
        Invoice.amount,
        Invoice.currency,
        *Invoice.RULED,
        Invoice.tip,
        Invoice.description,
        Invoice.created_at,
        Invoice.covered_at,
        Invoice.received_sats,
        Attention.reason.alias("attention"),
    )
    .join(Attention, JOIN.LEFT_OUTER, on=(Attention.invoice_id == Invoice.id))
    .where(Invoice.tip.is_null(False))
    .order_by(*keyset.order(Invoice))
    .limit(slot("limit")),
)
# The till's sales, the newest first, each with the sum that settlement counts.
SALES = _SALES.where(_own(Invoice))
# Sales whose payment was taken back, until they are paid again or set aside, however old.
ALARMS = _SALES.where(
    _own(Attention) & (Attention.reason << ("vanished", "reorganised")) & (Invoice.status != "paid")
)
INVOICE_PLACE = keyset.place_of(Invoice).where(_own(Invoice))

# Payments that settle nothing: parts, and money that was late, too much, or for a cancelled
# invoice. An index holds only them.
_LOOSE = Payment.invoice_id.is_null()
PAYMENTS = _older(_PAYMENTS, Payment)
LOOSE_PAYMENTS = PAYMENTS.where(_LOOSE)
PAYMENT_PLACE = keyset.place_of(Payment).where(_own(Payment))

# The columns that a search in texts goes through, a piece at a time; then the rows that were found.
INVOICE_TEXTS = _older(
    shaped(
        Texts,
        Invoice.select(
            Invoice.id,
            Invoice.description,
            Invoice.reference,
            *Invoice.PERSONAL,
            Invoice.amount_sats,
            Invoice.amount.alias("value"),
            Invoice.currency.alias("value_in"),
            *Invoice.ASKED,
            Invoice.created_at,
        ),
    ),
    Invoice,
)
INVOICE_TEXTS_BY_STATUS = INVOICE_TEXTS.where(_OF_STATUS)
PAYMENT_TEXTS = _older(
    shaped(
        Texts,
        Payment.select(
            Payment.id,
            Invoice.description,
            Invoice.reference,
            *Invoice.PERSONAL,
            Payment.amount_sats,
            Payment.value_at_receipt.alias("value"),
            Payment.currency.alias("value_in"),
            *Invoice.ASKED,
            Payment.created_at,
        ).join(Invoice, on=_OF_ADDRESS),
    ),
    Payment,
)
LOOSE_PAYMENT_TEXTS = PAYMENT_TEXTS.where(_LOOSE)


def _few(query: Q, model: Listed, condition: Expression) -> Q:
    """The newest first, by the condition's index, not by that of all the merchant's rows."""
    own = (model.merchant_id + 0) == slot("merchant_id")
    return query.where(condition & own).order_by(*keyset.order(model))


# Invoices that need a human, the highest stake first, behind a row named by stake and id.
WANTING = shaped(
    InvoiceWith,
    _INVOICES.select_extend(Invoice.price, Attention.since_at, Attention.stake_minor)
    .where(
        (Attention.merchant_id == slot("merchant_id"))
        & (Attention.stake_minor <= slot("stake_minor"))
        & ((Attention.stake_minor < slot("stake_minor")) | (Attention.invoice_id > slot("id")))
    )
    .order_by(Attention.stake_minor.desc(), Attention.invoice_id)
    .limit(slot("limit")),
)
WANTING_PLACE = Attention.select(Attention.stake_minor).where(
    (Attention.invoice_id == slot("id")) & (Attention.merchant_id == slot("merchant_id"))
)


def _begins(column: ColumnBase) -> Expression:
    """True for a value from `begin` up to `end`, byte by byte: `storage/sqlite.py`."""
    return Expression(column, "~>=~", slot("begin")) & Expression(column, "~<~", slot("end"))


# The newest thousand with this whole order number, which any number of invoices may have.
_OF_REFERENCE = (
    Invoice.select(Invoice.id)
    .where(_own(Invoice) & (Invoice.reference == slot("begin")))
    .order_by(*keyset.order(Invoice))
    .limit(1_000)
)


def _found(query: Q, model: Listed) -> dict[str, Q]:
    """Rows by the beginning of an id, an address or a txid, or by a reference; and the given ids.

    A txid finds its invoice also while the transaction waits, and when it has vanished.
    """
    invoice_id = Invoice.id if model is Invoice else Payment.address_invoice_id
    paid_to = Output.select(Output.invoice_id).where(_begins(Output.txid))
    by_txid = invoice_id.in_(paid_to)
    if model is Payment:
        by_txid &= _begins(Payment.tx_hash)
    conditions = {
        "id": _begins(Invoice.id),
        "address": _begins(Invoice.deposit_address),
        "txid": by_txid,
        "reference": invoice_id.in_(_OF_REFERENCE),
    }
    by_name = {name: _few(query, model, one) for name, one in conditions.items()}
    found = {name: one.limit(slot("limit")) for name, one in by_name.items()}
    return found | {"chosen": _few(query, model, is_given(model.id))}


FOUND_INVOICES = _found(_INVOICES, Invoice)
FOUND_PAYMENTS = _found(_PAYMENTS, Payment)


# A merchant's links, with what came through each.
MOST_COUNTED = 500  # of a link's invoices; an index is read no further


def _count(*conditions: Expression) -> Any:
    """The number of a link's invoices that meet the condition, at most MOST_COUNTED."""
    of_link = Invoice.payment_link_id == PaymentLink.id
    found = Invoice.select(Invoice.payment_link_id).where(of_link, *conditions).limit(MOST_COUNTED)
    return Select([found.alias("counted")], [fn.COUNT(SQL("*"))])


_IS_OWN = PaymentLink.merchant_id == slot("merchant_id")


class ListedLink(PaymentLink):
    invoices: int
    paid: int


_OWN = shaped(
    ListedLink,
    PaymentLink.select(
        PaymentLink, _count().alias("invoices"), _count(Invoice.status == "paid").alias("paid")
    ).where(_IS_OWN),
)
LINKS = keyset.older(_OWN, PaymentLink)
LINK_PLACE = keyset.place_of(PaymentLink).where(_IS_OWN)
LINK = _OWN.where(PaymentLink.id == slot("id"))

_OF_LINK = Invoice.payment_link_id == slot("payment_link_id")
_INVOICES_OF_LINK = Invoice.select(
    Invoice.id,
    Invoice.status,
    *Invoice.ASKED,
    Invoice.amount_sats,
    Invoice.created_at,
    CAME_SATS.alias("received_sats"),
).where(_OF_LINK)
INVOICES_OF_LINK = keyset.older(_INVOICES_OF_LINK, Invoice)
INVOICE_OF_LINK_PLACE = keyset.place_of(Invoice).where(_OF_LINK)
