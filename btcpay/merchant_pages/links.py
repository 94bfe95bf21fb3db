"""Payment links: what came through each, made, switched on and off, and as a card to print."""

import re
from decimal import Decimal

from flask import Response

from btcpay.checkout.bip21 import qr_svg
from btcpay.errors import NotFound
from btcpay.ids import is_id
from btcpay.invoices.links import set_active
from btcpay.merchant_pages import new_link
from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.visit import Visit
from storage.database import Row
from storage.queries import link_pages

ROWS = 20  # of a page


def add(area: Area) -> None:
    """Serves /merchant/links and all below it."""
    area.get("/links", show_links)
    area.post("/links", new_link.make)
    area.get("/links/new", new_link.show_form)
    area.get("/links/<id>", show_link)
    area.get("/links/<id>/card", show_card)
    area.post("/links/<id>/activate", lambda visit, id: switch(visit, id, True))
    area.post("/links/<id>/deactivate", lambda visit, id: switch(visit, id, False))


def show_links(visit: Visit) -> Response:
    """The newest links, or those below `below`."""
    values = {"merchant_id": visit.merchant_id} | _start(visit)
    rows, below = _page(visit.service.db.rows(link_pages.LINKS, limit=ROWS + 1, **values))
    return visit.page(
        "links.html", links=[_shown(row) for row in rows], below=below, most=link_pages.MOST_COUNTED
    )


def show_link(visit: Visit, id: str) -> Response:
    """One link, its QR code, and the invoices that came through it."""
    link, db = _own(visit, id), visit.service.db
    values = {"payment_link_id": id} | _start(visit)
    rows, below = _page(db.rows(link_pages.INVOICES, limit=ROWS + 1, **values))
    for row in rows:
        row["amount_usd"] = Decimal(row["amount_usd_quote"])
    return visit.page(
        "link.html",
        link=link,
        url=_url(visit, id),
        qr=qr_svg(_url(visit, id)),
        invoices=rows,
        below=below,
        most=link_pages.MOST_COUNTED,
    )


def show_card(visit: Visit, id: str) -> Response:
    """A card for the counter: what it is for, and the QR code of the link's page."""
    link, url = _own(visit, id), _url(visit, id)
    brand = visit.pages.brand(visit.merchant_id)
    return visit.page("card.html", brand=brand, link=link, url=url, qr=qr_svg(url))


def switch(visit: Visit, id: str, active: bool) -> Response:
    """Lets the link make invoices, or stops it."""
    _own(visit, id)
    set_active(visit.service.db, id, active, visit.now)
    return visit.to(f"/links/{id}", done="on" if active else "off")


def _own(visit: Visit, id: str) -> Row:
    values = {"id": id, "merchant_id": visit.merchant_id}
    row = visit.service.db.row(link_pages.LINK, **values) if is_id("lnk", id) else None
    if row is None:
        raise NotFound("there is no such payment link")
    return _shown(row)


def _shown(row: Row) -> Row:
    """The row with its amounts as numbers."""
    columns = ("amount_usd", "min_amount_usd", "max_amount_usd")
    return row | {name: Decimal(row[name]) for name in columns if row[name] is not None}


def _url(visit: Visit, id: str) -> str:
    return f"{visit.service.settings.base_url}/link/{id}"


def _start(visit: Visit) -> dict[str, int]:
    """What the page stands below: the time and number of a row in `below`, else nothing."""
    match = re.fullmatch(r"([0-9]{1,16})\.([0-9]{1,16})", visit.query.get("below", ""))
    created_at, seq = map(int, match.groups()) if match else link_pages.ABOVE_ALL
    return {"created_at": created_at, "seq": seq}


def _page(rows: list[Row]) -> tuple[list[Row], str]:
    """The rows of a page, and what the next one stands below; "" where there is none."""
    page = rows[:ROWS]
    return page, "{created_at}.{seq}".format(**page[-1]) if len(rows) > ROWS else ""
