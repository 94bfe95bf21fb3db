"""The merchant's invoices and payments: searched, page by page."""

from collections.abc import Mapping
from typing import Any

from flask import Response

from btcpay.merchant_pages.lists.listing import Listing
from btcpay.merchant_pages.lists.search import MOST_CHARACTERS, Names, search
from btcpay.merchant_pages.visit import Visit
from schemas.requests import STATUSES
from storage.queries.lists import merchant_lists as queries
from storage.statement import Typed
from storage.values import Values

LOOSE = "loose"


def show_invoices(visit: Visit) -> Response:
    """A page of the list, or of a search; a single row found by its name is opened at once."""
    own: Values = {"merchant_id": visit.merchant_id}
    older, texts = queries.INVOICES, queries.INVOICE_TEXTS
    status = visit.query.get("status", "")
    if status in STATUSES:
        own["status"] = status
        older, texts = queries.INVOICES_BY_STATUS, queries.INVOICE_TEXTS_BY_STATUS
    listing = Listing("inv", older, queries.INVOICE_PLACE, own)
    page = _page(visit, listing, queries.FOUND_INVOICES, texts)
    found = page["found"]
    if found and found.named and len(found.rows) == 1:
        return visit.to(f"/invoices/{found.rows[0].id}")
    return visit.page("invoices.html", of_status=own.get("status", ""), **page)


def show_payments(visit: Visit) -> Response:
    """A page of all payments, or of those that settle no invoice; or what a search finds."""
    older, texts = queries.PAYMENTS, queries.PAYMENT_TEXTS
    kind = LOOSE if visit.query.get("kind") == LOOSE else ""
    if kind:
        older, texts = queries.LOOSE_PAYMENTS, queries.LOOSE_PAYMENT_TEXTS
    own: Values = {"merchant_id": visit.merchant_id}
    listing = Listing("pay", older, queries.PAYMENT_PLACE, own)
    page = _page(visit, listing, queries.FOUND_PAYMENTS, texts)
    return visit.page("payments.html", kind=kind, **page)


def _page(
    visit: Visit, listing: Listing, names: Mapping[bool, Names], texts: Typed[queries.Texts]
) -> dict[str, Any]:
    """The typed text with the rows that it finds, or a page of the list without one."""
    db, typed = visit.service.db, visit.query.get("q", "").strip()[:MOST_CHARACTERS]
    if not typed:
        return {"q": typed, "found": None, "shown": listing.page(db, visit.query)}
    behind = visit.query.get("older", "")
    found = search(db, listing, names[db.is_server], texts, typed, behind)
    return {"q": typed, "found": found, "shown": None}
