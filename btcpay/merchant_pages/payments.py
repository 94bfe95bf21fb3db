"""The merchant's payments: all, or those that settle no invoice; searched, page by page."""

from typing import Any

from flask import Response

from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.listing import Listing
from btcpay.merchant_pages.search import MOST_CHARACTERS, Found, Names, by_name, in_texts
from btcpay.merchant_pages.visit import Visit
from btcpay.values.ids import is_id
from btcpay.values.money import usd_for_sats
from storage.database import Row
from storage.queries import merchant_lists as lists

LOOSE = "loose"
NAMES = Names(lists.PAYMENTS_BY_ID, lists.PAYMENTS_BY_ADDRESS, lists.PAYMENTS_BY_TXID)


def add(area: Area) -> None:
    """Serves /merchant/payments."""
    area.get("/payments", show)


def show(visit: Visit) -> Response:
    """A page of the list, or what a search finds."""
    kind = LOOSE if visit.query.get("kind") == LOOSE else ""
    typed = visit.query.get("q", "").strip()[:MOST_CHARACTERS]
    shared: dict[str, Any] = {"kind": kind, "q": typed, "usd_for_sats": usd_for_sats}
    if typed:
        return visit.page("payments.html", found=_found(visit, kind, typed), **shared)
    shown = _listing(visit, kind).page(visit.service.db, visit.query)
    return visit.page("payments.html", shown=shown, **shared)


def _listing(visit: Visit, kind: str) -> Listing:
    own = {"merchant_id": visit.merchant_id}
    if kind:
        newer = lists.LOOSE_PAYMENTS_NEWER
        return Listing("pay", lists.LOOSE_PAYMENTS, newer, lists.PAYMENT_PLACE, own)
    return Listing("pay", lists.PAYMENTS, lists.PAYMENTS_NEWER, lists.PAYMENT_PLACE, own)


def _found(visit: Visit, kind: str, typed: str) -> Found:
    behind = visit.query.get("older", "")
    if not behind and (rows := _named(visit, typed)):
        return Found(rows, named=True)
    texts = lists.LOOSE_PAYMENT_TEXTS if kind else lists.PAYMENT_TEXTS
    listing = _listing(visit, kind)
    return in_texts(visit.service.db, listing, texts, lists.PAYMENTS_CHOSEN, typed, behind)


def _named(visit: Visit, typed: str) -> list[Row]:
    db, merchant_id = visit.service.db, visit.merchant_id
    rows = by_name(db, NAMES, typed, merchant_id)
    if not rows and is_id("pay", typed):
        rows = db.rows(lists.PAYMENTS_CHOSEN, merchant_id=merchant_id, **lists.chosen([typed]))
    return rows
