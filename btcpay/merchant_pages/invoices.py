"""The merchant's invoices: by status, searched, page by page."""

from typing import Any

from flask import Response

from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.listing import Listing
from btcpay.merchant_pages.search import MOST_CHARACTERS, Found, Names, by_name, in_texts
from btcpay.merchant_pages.visit import Visit
from storage.queries import merchant_lists as lists

STATUSES = ("open", "paid", "expired", "canceled")
NAMES = Names(lists.INVOICES_BY_ID, lists.INVOICES_BY_ADDRESS, lists.INVOICES_BY_TXID)


def add(area: Area) -> None:
    """Serves /merchant/invoices."""
    area.get("/invoices", show)


def show(visit: Visit) -> Response:
    """A page of the list, or what a search finds; what one name alone finds is opened at once."""
    status = visit.query.get("status", "")
    status = status if status in STATUSES else ""
    typed = visit.query.get("q", "").strip()[:MOST_CHARACTERS]
    shared: dict[str, Any] = {"of_status": status, "q": typed}
    if not typed:
        shown = _listing(visit, status).page(visit.service.db, visit.query)
        return visit.page("invoices.html", shown=shown, **shared)
    found = _found(visit, status, typed)
    if found.named and len(found.rows) == 1:
        return visit.to(f"/invoices/{found.rows[0]['id']}")
    return visit.page("invoices.html", found=found, **shared)


def _listing(visit: Visit, status: str) -> Listing:
    own = {"merchant_id": visit.merchant_id}
    if not status:
        return Listing("inv", lists.INVOICES, lists.INVOICES_NEWER, lists.INVOICE_PLACE, own)
    newer = lists.INVOICES_BY_STATUS_NEWER
    of_status = own | {"status": status}
    return Listing("inv", lists.INVOICES_BY_STATUS, newer, lists.INVOICE_PLACE, of_status)


def _found(visit: Visit, status: str, typed: str) -> Found:
    db, behind = visit.service.db, visit.query.get("older", "")
    if not behind and (rows := by_name(db, NAMES, typed, visit.merchant_id)):
        return Found(rows, named=True)
    texts = lists.INVOICE_TEXTS_BY_STATUS if status else lists.INVOICE_TEXTS
    return in_texts(db, _listing(visit, status), texts, lists.INVOICES_CHOSEN, typed, behind)
