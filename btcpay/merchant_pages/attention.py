"""What needs the merchant: each invoice with why, and what can be done about it."""

from flask import Response

from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.visit import Visit
from btcpay.values.ids import is_id
from storage.queries import merchant_lists as lists

SIZE = 10  # each takes a third of a screen
# Of these nothing can be accepted: the invoice is paid, or its payment is not in the chain.
ONLY_SET_ASIDE = ("too_much", "reorganised")


def add(area: Area) -> None:
    """Serves /merchant/attention."""
    area.get("/attention", show)


def show(visit: Visit) -> Response:
    """What has waited longest first, from `?after=ID` on."""
    own, db = {"merchant_id": visit.merchant_id}, visit.service.db
    after = visit.query.get("after", "")
    after = after if is_id("inv", after) else ""
    place = db.row(lists.WANTING_PLACE, **own, id=after) if after else None
    since = place["at"] if place else 0
    rows = db.rows(lists.WANTING, **own, at=since, id=after if place else "", limit=SIZE + 1)
    return visit.page(
        "attention.html",
        rows=rows[:SIZE],
        next=rows[SIZE - 1]["id"] if len(rows) > SIZE else None,
        is_first=place is None,
        only_set_aside=ONLY_SET_ASIDE,
    )
