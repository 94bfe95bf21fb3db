"""A merchant's invoices, payments and links, as their own pages list and find them."""

from typing import Any, TypeVar

from peewee import JOIN, ColumnBase, Expression, Select, fn

from btcpay import hooks
from btcpay.values.statuses import InvoiceStatus
from storage.models import Attention, Invoice, Merchant, Output, Payment, PaymentLink
from storage.queries import sessions
from storage.queries.invoices import CAME_SATS, InvoiceWith
from storage.queries.lists import keyset
from storage.queries.payments import PaymentWith
from storage.statement import Shaped, counted, same, shaped, slot

Q = TypeVar("Q", bound=Select)


class ListedInvoice(InvoiceWith):
    value: str | None  # that a search finds, in the currency beside it
    value_in: str
    came_sats: int  # late ones too, to an invoice that needs a human


class ListedPayment(PaymentWith):
    value: (
        str | None
    )  # at its receipt; `amount` and `currency` are those of its invoice
    value_in: str


def _invoices(*columns: ColumnBase) -> Shaped[ListedInvoice]:
    """Invoices with the sum that settlement counts, and why they need a human."""
    shown = Invoice.select(
        *(Invoice.id, Invoice.status, Invoice.amount_sats, Invoice.received_sats),
        *(Invoice.description, Invoice.tip, Invoice.created_ms, Invoice.covered_ms),
        *(*Invoice.ASKED, Attention.reason.alias("attention"), *columns),
    ).join(Attention, JOIN.LEFT_OUTER, on=(Attention.invoice_id == Invoice.id))
    return shaped(ListedInvoice, shown)


_INVOICES = _invoices(
    *(Invoice.amount.alias("value"), Invoice.currency.alias("value_in")),
    *(Invoice.reference, *Invoice.PERSONAL),
)
_PAYMENTS = shaped(
    ListedPayment,
    Payment.select(
        *(Payment.id, Payment.amount_sats, Payment.tx_hash, Payment.created_ms),
        *(Payment.currency.alias("value_in"), Payment.value_at_receipt.alias("value")),
        *(Payment.address_invoice_id, Payment.invoice_id),
        *(Invoice.description, Invoice.reference, *Invoice.PERSONAL, *Invoice.ASKED),
        *(Invoice.tip, Invoice.status, Invoice.expires_ms),
        Output.select(fn.MIN(Output.first_seen_ms))
        .where(Output.payment_id == Payment.id)
        .alias("first_seen_ms"),
    ).join(Invoice, on=(Invoice.id == Payment.address_invoice_id)),
)
_OWN_INVOICE = same(Invoice.merchant_id)
_OWN_PAYMENT = same(Payment.merchant_id)
_OWN_ATTENTION = same(Attention.merchant_id)

INVOICES = keyset.older(_INVOICES.where(_OWN_INVOICE), Invoice)
INVOICES_BY_STATUS = INVOICES.where(same(Invoice.status))
_SALES = (
    _invoices(Invoice.confirmations, Invoice.tolerance_percent)
    .where(Invoice.tip.is_null(False))
    .order_by(*keyset.order(Invoice))
    .limit(slot("limit"))
)
# The till's sales, the newest first.
SALES = _SALES.where(_OWN_INVOICE)
# Sales whose payment was taken back, until they are paid again or set aside, however old.
ALARMS = _SALES.where(
    _OWN_ATTENTION
    & (Attention.reason << ("vanished", "reorganised"))
    & (Invoice.status != InvoiceStatus.PAID)
)
INVOICE_PLACE = keyset.place_of(Invoice).where(_OWN_INVOICE)

# Payments that settle nothing: parts, and money that was late, too much, or for a cancelled
# invoice. An index holds only them.
PAYMENTS = keyset.older(_PAYMENTS.where(_OWN_PAYMENT), Payment)
LOOSE_PAYMENTS = PAYMENTS.where(Payment.invoice_id.is_null())
PAYMENT_PLACE = keyset.place_of(Payment).where(_OWN_PAYMENT)


MOST_IN_INBOX = 100


class Session(sessions.Session):
    """`wanting`: how many invoices, or things of parts, wait for the merchant; at most
    MOST_IN_INBOX.
    """

    wanting: int


def _inbox() -> Any:
    """The ids of what waits for the merchant of the outer query."""
    ids: Any = Attention.select(Attention.invoice_id).where(
        Attention.merchant_id == Merchant.id
    )
    for part in hooks.of(hooks.MerchantViews):
        if part.inbox is not None:
            ids = ids | part.inbox
    return ids


# One statement for what each page needs, whatever the parts count.
SESSION = shaped(
    Session,
    sessions.BY_SECRET.select_extend(counted(_inbox(), MOST_IN_INBOX).alias("wanting")),
)

# Invoices that need a human, the highest stake first.
WANTING = shaped(
    ListedInvoice,
    _INVOICES.select_extend(
        Invoice.price,
        Attention.since_ms,
        Attention.stake_minor,
        CAME_SATS.alias("came_sats"),
    )
    .where(_OWN_ATTENTION)
    .order_by(Attention.stake_minor.desc(), Attention.invoice_id)
    .limit(slot("limit")),
)


def _begins(column: ColumnBase) -> Expression:
    """True for a value from `begin` up to `end`, byte by byte: `storage/sqlite.py`."""
    return Expression(column, "~>=~", slot("begin")) & Expression(
        column, "~<~", slot("end")
    )


# The newest thousand with this whole order number, which any number of invoices may have.
_OF_REFERENCE = (
    Invoice.select(Invoice.id)
    .where(_OWN_INVOICE & (Invoice.reference == slot("begin")))
    .order_by(*keyset.order(Invoice))
    .limit(1_000)
)


def _searches(query: Q, model: type[Invoice] | type[Payment]) -> dict[str, Q]:
    """Rows by the beginning of an id, an address or a txid, or by a reference.

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
    # By the condition's index, not by that of all the merchant's rows.
    own = (model.merchant_id + 0) == slot("merchant_id")
    newest = query.where(own).order_by(*keyset.order(model)).limit(slot("limit"))
    return {name: newest.where(condition) for name, condition in conditions.items()}


FOUND_INVOICES = _searches(_INVOICES, Invoice)
FOUND_PAYMENTS = _searches(_PAYMENTS, Payment)


# A merchant's links, with what came through each.
MOST_COUNTED = 500  # of a link's invoices; an index is read no further


def _count(*conditions: Expression) -> Select:
    """The number of a link's invoices that meet the condition, at most MOST_COUNTED."""
    of_link = Invoice.payment_link_id == PaymentLink.id
    found = Invoice.select(Invoice.payment_link_id).where(of_link, *conditions)
    return counted(found, MOST_COUNTED)


_IS_OWN = same(PaymentLink.merchant_id)


class ListedLink(PaymentLink):
    invoices: int
    paid: int


_OWN = shaped(
    ListedLink,
    PaymentLink.select(
        PaymentLink,
        _count().alias("invoices"),
        _count(Invoice.status == InvoiceStatus.PAID).alias("paid"),
    ).where(_IS_OWN),
)
LINKS = keyset.older(_OWN, PaymentLink)
LINK_PLACE = keyset.place_of(PaymentLink).where(_IS_OWN)
LINK = _OWN.where(same(PaymentLink.id))

_OF_LINK = same(Invoice.payment_link_id)
INVOICES_OF_LINK = keyset.older(_INVOICES.where(_OF_LINK), Invoice)
INVOICE_OF_LINK_PLACE = keyset.place_of(Invoice).where(_OF_LINK)
