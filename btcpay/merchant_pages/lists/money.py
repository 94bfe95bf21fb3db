"""The merchant's invoices and payments: searched, page by page."""

from flask import Response

from btcpay.merchant_pages.lists.listing import Listing
from btcpay.merchant_pages.lists.search import (
    MOST_CHARACTERS,
    Found,
    Names,
    by_name,
    in_texts,
    named,
)
from btcpay.merchant_pages.visit import Visit
from btcpay.values.ids import is_id
from storage.queries.lists import merchant_lists as queries

STATUSES = ("open", "paid", "expired", "canceled")
LOOSE = "loose"
INVOICE_NAMES = Names(
    queries.INVOICES_BY_ID,
    queries.INVOICES_BY_ADDRESS,
    queries.INVOICES_BY_TXID,
    queries.INVOICES_BY_REFERENCE,
)
PAYMENT_NAMES = Names(
    queries.PAYMENTS_BY_ID,
    queries.PAYMENTS_BY_ADDRESS,
    queries.PAYMENTS_BY_TXID,
    queries.PAYMENTS_BY_REFERENCE,
)


def show_invoices(visit: Visit) -> Response:
    """A page of the list, or what a search finds; what one name alone finds is opened at once."""
    status, typed = visit.query.get("status", ""), _typed(visit)
    status = status if status in STATUSES else ""
    listing = _invoices(visit, status)
    found = _found_invoices(visit, listing, typed) if typed else None
    if found and found.named and len(found.rows) == 1:
        return visit.to(f"/invoices/{found.rows[0]['id']}")
    shown = None if found else listing.page(visit.service.db, visit.query)
    return visit.page("invoices.html", found=found, shown=shown, of_status=status, q=typed)


def _typed(visit: Visit) -> str:
    return visit.query.get("q", "").strip()[:MOST_CHARACTERS]


def _invoices(visit: Visit, status: str) -> Listing:
    own: dict[str, object] = {"merchant_id": visit.merchant_id}
    older, newer = queries.INVOICES, queries.INVOICES_NEWER
    if status:
        own["status"] = status
        older, newer = queries.INVOICES_BY_STATUS, queries.INVOICES_BY_STATUS_NEWER
    return Listing("inv", older, newer, queries.INVOICE_PLACE, own)


def _found_invoices(visit: Visit, listing: Listing, typed: str) -> Found:
    db, behind = visit.service.db, visit.query.get("older", "")
    if not behind and (rows := by_name(db, INVOICE_NAMES, typed, visit.merchant_id)):
        return named(rows)
    of_status = "status" in listing.values
    texts = queries.INVOICE_TEXTS_BY_STATUS if of_status else queries.INVOICE_TEXTS
    return in_texts(db, listing, texts, queries.INVOICES_CHOSEN, typed, behind)


def show_payments(visit: Visit) -> Response:
    """A page of all payments, or of those that settle no invoice; or what a search finds."""
    kind, typed = LOOSE if visit.query.get("kind") == LOOSE else "", _typed(visit)
    older, newer = queries.PAYMENTS, queries.PAYMENTS_NEWER
    if kind:
        older, newer = queries.LOOSE_PAYMENTS, queries.LOOSE_PAYMENTS_NEWER
    own = {"merchant_id": visit.merchant_id}
    listing = Listing("pay", older, newer, queries.PAYMENT_PLACE, own)
    found = _found_payments(visit, listing, typed, kind) if typed else None
    shown = None if found else listing.page(visit.service.db, visit.query)
    return visit.page("payments.html", found=found, shown=shown, kind=kind, q=typed)


def _found_payments(visit: Visit, listing: Listing, typed: str, kind: str) -> Found:
    db, behind = visit.service.db, visit.query.get("older", "")
    rows = by_name(db, PAYMENT_NAMES, typed, visit.merchant_id) if not behind else []
    if not rows and not behind and is_id("pay", typed):
        rows = db.rows(queries.PAYMENTS_CHOSEN, **listing.values, **queries.chosen([typed]))
    if rows:
        return named(rows)
    texts = queries.LOOSE_PAYMENT_TEXTS if kind else queries.PAYMENT_TEXTS
    return in_texts(db, listing, texts, queries.PAYMENTS_CHOSEN, typed, behind)
