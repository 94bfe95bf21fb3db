"""The pages of payment links: list, details, activation, and a card to print."""

from flask import Response

from btcpay.invoices.links import (
    set_active,
    sum_raised,
)
from btcpay.parts.merchant_pages import link_queries, queries
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.web.pages.listing import Listing
from btcpay.web.pages.qr import qr_svg
from storage.queries import links
from storage.values import Values


def show_links(visit: Visit) -> Response:
    parameters: Values = {"merchant_id": visit.merchant_id}
    listing = Listing("lnk", link_queries.LINKS, link_queries.LINK_PLACE, parameters)
    page = listing.page(visit.service.db, visit.query)
    return visit.page("links.html", listing=page, most=link_queries.MOST_COUNTED)


def show_link(visit: Visit, id: str) -> Response:
    """Shows a link with its QR code, and a page of the list of its invoices."""
    link = visit.get_or_404(link_queries.LINK, "lnk", id)
    url = _url(visit, id)
    db = visit.service.db
    listing = Listing(
        "inv",
        queries.INVOICES_OF_LINK,
        queries.INVOICE_OF_LINK_PLACE,
        {"payment_link_id": id},
    )
    raised = None
    if link.goal:
        raised = sum_raised(db, link)
    return visit.page(
        "link.html",
        link=link,
        listing=listing.page(db, visit.query),
        raised=raised,
        url=url,
        qr=qr_svg(url),
        most=link_queries.MOST_COUNTED,
    )


def show_card(visit: Visit, id: str) -> Response:
    link = visit.get_or_404(link_queries.LINK, "lnk", id)
    url = _url(visit, id)
    brand = visit.pages.brand(visit.merchant_id)
    return visit.page("card.html", brand=brand, link=link, url=url, qr=qr_svg(url))


def switch(visit: Visit, id: str, active: bool) -> Response:
    """Activates or deactivates a link, and redirects (303) to its page."""
    visit.get_or_404(links.ANY_BY_ID, "lnk", id)
    set_active(visit.service.db, id, active, visit.now)
    outcome = "off"
    if active:
        outcome = "on"
    return visit.redirect(f"/links/{id}", done=outcome)


def _url(visit: Visit, id: str) -> str:
    return f"{visit.service.settings.base_url}/link/{id}"
