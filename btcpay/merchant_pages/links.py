"""Payment links: their invoices, a form to make one, a switch, and a card to print."""

from typing import Any

from flask import Response

from btcpay.invoices.create import live_price
from btcpay.invoices.links import AMOUNTS, new_link, set_active
from btcpay.merchant_pages import queries
from btcpay.merchant_pages.lists.listing import Listing
from btcpay.merchant_pages.visit import Visit
from btcpay.values.errors import PriceUnavailable, TooLittle, TooMuch
from btcpay.web.errors import STATUS
from btcpay.web.pages.forms import AmountRefused, said
from btcpay.web.pages.languages import gettext
from btcpay.web.pages.qr import qr_svg
from schemas.requests import NEW_PRICED_LINK, load
from storage.queries import links
from storage.values import Values


def show_links(visit: Visit) -> Response:
    own: Values = {"merchant_id": visit.merchant_id}
    listing = Listing("lnk", queries.LINKS, queries.LINK_PLACE, own)
    shown = listing.page(visit.service.db, visit.query)
    return visit.page("links.html", shown=shown, most=queries.MOST_COUNTED)


def show_link(visit: Visit, id: str) -> Response:
    link, url = visit.own(queries.LINK, "lnk", id), _url(visit, id)
    of_link: Values = {"payment_link_id": id}
    listing = Listing("inv", queries.INVOICES_OF_LINK, queries.INVOICE_OF_LINK_PLACE, of_link)
    shown, most = listing.page(visit.service.db, visit.query), queries.MOST_COUNTED
    return visit.page("link.html", link=link, url=url, qr=qr_svg(url), shown=shown, most=most)


def show_card(visit: Visit, id: str) -> Response:
    link, url = visit.own(queries.LINK, "lnk", id), _url(visit, id)
    brand = visit.pages.brand(visit.merchant_id)
    return visit.page("card.html", brand=brand, link=link, url=url, qr=qr_svg(url))


def switch(visit: Visit, id: str, active: bool) -> Response:
    visit.own(links.ANY_BY_ID, "lnk", id)
    set_active(visit.service.db, id, active, visit.now)
    return visit.to(f"/links/{id}", done="on" if active else "off")


def _url(visit: Visit, id: str) -> str:
    return f"{visit.service.settings.base_url}/link/{id}"


def show_form(
    visit: Visit, status: int = 200, problem: str = "", wrong: dict[str, str] | None = None
) -> Response:
    """`wrong`: a sentence by the name of the field."""
    values = {"typed": visit.form, "wrong": wrong or {}, "problem": problem}
    return visit.page("new_link.html", status, **values)


def make(visit: Visit) -> Response:
    """Leads to the link of this press (303), or shows the form again with the mistakes."""
    typed, wrong = _typed(visit)
    if wrong:
        return show_form(visit, 400, wrong=wrong)
    try:
        id = _made(visit, load(NEW_PRICED_LINK, typed))
    except TooLittle as refused:
        small = (name for name in AMOUNTS if 0 < typed.get(f"{name}_usd", 0) < refused.least)
        return show_form(visit, 400, wrong=dict.fromkeys(small, said(refused)))
    except (TooMuch, PriceUnavailable) as error:
        return show_form(visit, STATUS[error.code], said(error))
    return visit.to(f"/links/{id}", done="made")


def _typed(visit: Visit) -> tuple[dict[str, Any], dict[str, str]]:
    """The typed fields as a body of create-payment-link, and a sentence for each wrong field."""
    form = visit.form
    typed: dict[str, Any] = {
        name: form[name].replace("\r\n", "\n") for name in ("title", "description") if name in form
    }
    wrong = {}
    for name in AMOUNTS:
        try:
            if name in form:
                typed[f"{name}_usd"] = visit.amount(form[name])
        except AmountRefused as refused:
            wrong[name] = str(refused)
    price, low, high = (typed.get(f"{name}_usd") for name in AMOUNTS)
    if not typed.get("title") and not any((price, low, high)) and not wrong:
        wrong["title"] = gettext("Give the link a title or an amount, so that customers know it.")
    if price is not None and (low or high):
        message = gettext("Leave this empty if the price is fixed.")
        wrong |= {name: message for name in AMOUNTS[1:] if f"{name}_usd" in typed}
    elif low and high and low > high:
        wrong["max_amount"] = gettext("This must not be less than the smallest amount.")
    return typed, wrong


def _made(visit: Visit, wanted: dict[str, Any]) -> str:
    service = visit.service
    price = live_price(service.prices, visit.now, visit.currency)
    with visit.once("lnk", links.ANY_BY_ID) as (id, is_made):
        if not is_made:
            new_link(service.db, visit.now, visit.merchant_id, wanted | {"id": id}, price)
    return id
