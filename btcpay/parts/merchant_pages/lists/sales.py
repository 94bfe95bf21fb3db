"""The pages with lists of invoices and of payments, which can be searched."""

from typing import NamedTuple

from flask import Response

from btcpay import hooks
from btcpay.parts.merchant_pages import queries
from btcpay.parts.merchant_pages.lists.search import QueryByName, search
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import number_of, start_of
from btcpay.web.pages.listing import Listing, ListPage
from schemas.queries import STATUSES
from storage.values import Values

MOST_CHARACTERS = 200  # of a search text; the longest id, address or txid has 90


def loose_kind(status: InvoiceStatus, expires_ms: int | None, came_ms: int) -> str:
    """Returns why a payment to an invoice with this status does not settle the invoice.

    - "late": the payment came after the expiry.
    - "part": the payment came in time, but was not enough.
    - "after_cancellation": the invoice was canceled.
    - "on_top": the invoice was paid already.

    `expires_ms` is the time of the expiry; None if the invoice never expires. `came_ms`
    is the time at which the payment was first seen, or the time of its block if that is
    earlier.
    """
    if status == InvoiceStatus.EXPIRED:
        if expires_ms is not None and came_ms >= expires_ms:
            return "late"
        return "part"
    kinds = {
        InvoiceStatus.OPEN: "part",
        InvoiceStatus.CANCELED: "after_cancellation",
        InvoiceStatus.PAID: "on_top",
    }
    return kinds[status]


def show_invoices(visit: Visit) -> Response:
    """Shows a page of the list of invoices, or of the invoices that a search finds.

    If a search by id, address, txid or reference finds only one invoice, redirects to
    that invoice.
    """
    parameters: Values = {"merchant_id": visit.merchant_id}
    older = queries.INVOICES
    status = visit.choice("status", STATUSES)
    if status:
        parameters["status"] = status
        older = queries.INVOICES_BY_STATUS
    listing = Listing("inv", older, queries.INVOICE_PLACE, parameters)
    query, page = _listed_page(visit, listing, queries.FOUND_INVOICES)
    if page.has_names and len(page.rows) == 1:
        return visit.redirect(f"/invoices/{page.rows[0].id}")
    return visit.page(
        "invoices.html",
        of_status=status,
        q=query,
        listing=page,
        notes_of=_notes_of,
    )


def _notes_of(row: queries.ListedSale) -> list[str]:
    """Returns the notes of parts (optional plug-ins) about a sale, such as "Refunded"."""
    notes = []
    for name, part in hooks.by_part(hooks.MerchantViews).items():
        state = getattr(row, queries.sale_column(name), None)
        if part.sale_note and state:
            notes.append(part.sale_note(state))
    return notes


def show_payments(visit: Visit) -> Response:
    """Shows a page of payments: of all, or of those that a search finds.

    With `?kind=loose`, only payments that settle no invoice are shown.
    """
    kind = visit.choice("kind", ("loose",))
    older = queries.PAYMENTS
    if kind:
        older = queries.LOOSE_PAYMENTS
    parameters: Values = {"merchant_id": visit.merchant_id}
    listing = Listing("pay", older, queries.PAYMENT_PLACE, parameters)
    query, page = _listed_page(visit, listing, queries.FOUND_PAYMENTS)
    return visit.page(
        "payments.html",
        kind=kind,
        loose_kind=loose_kind,
        q=query,
        listing=page,
    )


class SearchedPage(NamedTuple):
    """The search text ("" if there is none), and a page of the rows that it finds."""

    query: str
    page: ListPage


def _listed_page(
    visit: Visit, listing: Listing, query_by_name: QueryByName
) -> SearchedPage:
    """Returns a page of the rows that the search in the URL finds.

    Without a search text, returns a page of the whole list. With `?day=`, that page
    begins with the newest row of this day.
    """
    db = visit.service.db
    query = visit.query.get("q", "").strip()[:MOST_CHARACTERS]
    if query:
        page = search(
            db, listing, query_by_name, query, after_id=visit.query.get("older", "")
        )
        return SearchedPage(query, page)
    day = visit.day("day")
    before_ms = None
    if day:
        before_ms = start_of(number_of(day) + 1, visit.zone)
    return SearchedPage("", listing.page(db, visit.query, before_ms))
