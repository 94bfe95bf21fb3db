"""Queries for the lists of the merchant's pages: invoices, payments, and searches in them."""

from typing import TypeVar

from peewee import JOIN, SQL, ColumnBase, Expression, Select, fn

from btcpay import hooks
from btcpay.values.statuses import InvoiceStatus
from storage.models import Attention, Invoice, Output, Payment
from storage.queries.invoices import CAME_SATS, InvoiceWith
from storage.queries.lists import keyset
from storage.queries.payments import PaymentWith
from storage.statement import TypedSelect, eq, param, rows_as

Q = TypeVar("Q", bound=Select)


class ListedInvoice(InvoiceWith):
    """An invoice in a list.

    - `value`: the amount that a search matches, in the currency `value_in`.
    - `came_sats`: all satoshis that came, including late ones. Only rows of WANTING have
      this column.
    """

    value: str | None
    value_in: str
    came_sats: int


class ListedSale(ListedInvoice):
    """An invoice in the list of sales.

    `payments` is the number of outputs that pay to the invoice, including unconfirmed
    ones. Each part (optional plug-in) whose hook has a `sale_state` adds a column with
    the state that the part gives the sale. The column's name is `sale_column(part)`.
    """

    payments: int


class ListedPayment(PaymentWith):
    """A payment in a list, with columns of its invoice such as `amount` and `currency`.

    `value` is what the payment was worth at its receipt, in the currency `value_in`;
    None if no exchange rate was known.
    """

    value: str | None
    value_in: str


def _invoices(*columns: ColumnBase) -> TypedSelect[ListedInvoice]:
    """Returns the query for invoices, with the usual columns and these ones.

    In each row, `received_sats` are the satoshis that count for the invoice, and
    `attention` is the reason why the invoice needs attention; None if there is none.
    """
    query = Invoice.select(
        Invoice.id,
        Invoice.status,
        Invoice.amount_sats,
        Invoice.received_sats,
        Invoice.description,
        Invoice.gratuity,
        Invoice.created_ms,
        Invoice.covered_ms,
        *Invoice.AMOUNT_DUE,
        Attention.reason.alias("attention"),
        *columns,
    ).join(Attention, JOIN.LEFT_OUTER, on=(Attention.invoice_id == Invoice.id))
    return rows_as(ListedInvoice, query)


_INVOICES = _invoices(
    Invoice.amount.alias("value"),
    Invoice.currency.alias("value_in"),
    Invoice.reference,
    *Invoice.PERSONAL,
)


def sale_column(part: str) -> str:
    """Returns the name of the column with the state that this part (plug-in) gives a sale."""
    return f"{part}_state"


# Columns that the list of sales adds to each invoice.
_PAYMENTS_OF_SALE = Output.select(fn.COUNT(SQL("*"))).where(
    Output.invoice_id == Invoice.id, Output.vanished_ms.is_null()
)
_STATES_OF_SALE = [
    part.sale_state.alias(sale_column(name))
    for name, part in hooks.by_part(hooks.MerchantViews).items()
    if part.sale_state is not None
]
_LISTED_SALES = rows_as(
    ListedSale,
    _INVOICES.select_extend(_PAYMENTS_OF_SALE.alias("payments"), *_STATES_OF_SALE),
)
_PAYMENTS = rows_as(
    ListedPayment,
    Payment.select(
        Payment.id,
        Payment.amount_sats,
        Payment.tx_hash,
        Payment.created_ms,
        Payment.currency.alias("value_in"),
        Payment.value_at_receipt.alias("value"),
        Payment.address_invoice_id,
        Payment.invoice_id,
        Invoice.description,
        Invoice.reference,
        *Invoice.PERSONAL,
        *Invoice.AMOUNT_DUE,
        Invoice.gratuity,
        Invoice.status,
        Invoice.expires_ms,
        Output.select(fn.MIN(Output.first_seen_ms))
        .where(Output.payment_id == Payment.id)
        .alias("first_seen_ms"),
    ).join(Invoice, on=(Invoice.id == Payment.address_invoice_id)),
)
_OWN_INVOICE = eq(Invoice.merchant_id)
_OWN_PAYMENT = eq(Payment.merchant_id)
_OWN_ATTENTION = eq(Attention.merchant_id)

INVOICES = keyset.older(_LISTED_SALES.where(_OWN_INVOICE), Invoice)
INVOICES_BY_STATUS = INVOICES.where(eq(Invoice.status))
_SALES = (
    _invoices(Invoice.confirmations, Invoice.tolerance_percent)
    .where(Invoice.gratuity.is_null(False))
    .order_by(*keyset.order(Invoice))
    .limit(param("limit"))
)
# The till's sales, the newest first.
SALES = _SALES.where(_OWN_INVOICE)
# Sales whose payment has vanished or was reorganised, of any age, until they are paid
# again or set aside.
ALARMS = _SALES.where(
    _OWN_ATTENTION
    & (Attention.reason << ("vanished", "reorganised"))
    & (Invoice.status != InvoiceStatus.PAID)
)
INVOICE_PLACE = keyset.position_query(Invoice).where(_OWN_INVOICE)

# LOOSE_PAYMENTS settle no invoice: they are partial, late, in excess, or for a canceled
# invoice. An index of their own makes the query fast.
PAYMENTS = keyset.older(_PAYMENTS.where(_OWN_PAYMENT), Payment)
LOOSE_PAYMENTS = PAYMENTS.where(Payment.invoice_id.is_null())
PAYMENT_PLACE = keyset.position_query(Payment).where(_OWN_PAYMENT)


# Invoices that need attention, those with the highest amount in question first.
WANTING = rows_as(
    ListedInvoice,
    _INVOICES.select_extend(
        Invoice.price,
        Attention.since_ms,
        Attention.stake_minor,
        CAME_SATS.alias("came_sats"),
    )
    .where(_OWN_ATTENTION)
    .order_by(Attention.stake_minor.desc(), Attention.invoice_id)
    .limit(param("limit")),
)


def _begins(column: ColumnBase) -> Expression:
    """Returns the condition begin <= value < end, compared by bytes.

    The operators are PostgreSQL's; `storage/sqlite.py` has them for SQLite.
    """
    is_from_begin = Expression(column, "~>=~", param("begin"))
    is_before_end = Expression(column, "~<~", param("end"))
    return is_from_begin & is_before_end


# The newest thousand invoices with exactly this reference.
_OF_REFERENCE = (
    Invoice.select(Invoice.id)
    .where(_OWN_INVOICE & (Invoice.reference == param("begin")))
    .order_by(*keyset.order(Invoice))
    .limit(1_000)
)


def _searches(query: Q, model: type[Invoice] | type[Payment]) -> dict[str, Q]:
    """Returns the queries that find rows, by "id", "address", "txid" and "reference".

    The first three match the beginning of an id, an address or a txid, the last one a
    whole reference. The query by txid finds an invoice even if the transaction is
    unconfirmed or has vanished.
    """
    paid_by_tx = Output.select(Output.invoice_id).where(_begins(Output.txid))
    if model is Invoice:
        invoice_id = Invoice.id
        by_txid = invoice_id.in_(paid_by_tx)
    else:
        invoice_id = Payment.address_invoice_id
        # The invoice may have payments by other transactions too.
        by_txid = invoice_id.in_(paid_by_tx) & _begins(Payment.tx_hash)
    conditions = {
        "id": _begins(Invoice.id),
        "address": _begins(Invoice.deposit_address),
        "txid": by_txid,
        "reference": invoice_id.in_(_OF_REFERENCE),
    }
    # With `+ 0` the database uses the index of the condition, not the one that contains
    # all rows of the merchant.
    is_own = (model.merchant_id + 0) == param("merchant_id")
    newest = query.where(is_own).order_by(*keyset.order(model)).limit(param("limit"))
    return {name: newest.where(condition) for name, condition in conditions.items()}


FOUND_INVOICES = _searches(_LISTED_SALES, Invoice)
FOUND_PAYMENTS = _searches(_PAYMENTS, Payment)


# The invoices of a payment link.
_OF_LINK = eq(Invoice.payment_link_id)
INVOICES_OF_LINK = keyset.older(_INVOICES.where(_OF_LINK), Invoice)
INVOICE_OF_LINK_PLACE = keyset.position_query(Invoice).where(_OF_LINK)
