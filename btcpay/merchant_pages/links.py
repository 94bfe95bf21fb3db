"""Payment links: what came through each, made, switched on and off, and as a card to print."""

from flask import Response

from btcpay.checkout.bip21 import qr_svg
from btcpay.invoices.links import set_active
from btcpay.merchant_pages import new_link
from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.listing import Listing
from btcpay.merchant_pages.visit import Visit
from btcpay.values.errors import NotFound
from btcpay.values.ids import is_id
from storage.database import Row
from storage.queries import link_pages as queries


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
    """A page of the links, the newest first."""
    own = {"merchant_id": visit.merchant_id}
    listing = Listing("lnk", queries.LINKS, queries.LINKS_NEWER, queries.LINK_PLACE, own)
    shown = listing.page(visit.service.db, visit.query)
    return visit.page("links.html", shown=shown, most=queries.MOST_COUNTED)


def show_link(visit: Visit, id: str) -> Response:
    """One link, its QR code, and the invoices that came through it."""
    link, url, of_link = _own(visit, id), _url(visit, id), {"payment_link_id": id}
    listing = Listing(
        "inv", queries.INVOICES, queries.INVOICES_NEWER, queries.INVOICE_PLACE, of_link
    )
    shown = listing.page(visit.service.db, visit.query)
    most = queries.MOST_COUNTED
    return visit.page("link.html", link=link, url=url, qr=qr_svg(url), shown=shown, most=most)


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
    row = visit.service.db.row(queries.LINK, **values) if is_id("lnk", id) else None
    if row is None:
        raise NotFound("there is no such payment link")
    return row


def _url(visit: Visit, id: str) -> str:
    return f"{visit.service.settings.base_url}/link/{id}"
