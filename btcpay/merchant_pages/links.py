"""Payment links: their invoices, a form to make and to change one, a switch, a card to print."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from flask import Response

from btcpay.invoices.create import live_price
from btcpay.invoices.links import (
    AMOUNTS,
    ASKS,
    HOW,
    MOST_SUGGESTED,
    TEXTS,
    edit,
    new_link,
    raised,
    set_active,
)
from btcpay.languages import formats
from btcpay.merchant_pages import queries
from btcpay.merchant_pages.visit import Visit
from btcpay.values.errors import CommandError, PriceUnavailable, TooLittle, TooMuch
from btcpay.web.errors import STATUS
from btcpay.web.pages import languages
from btcpay.web.pages.forms import AmountRefused, said
from btcpay.web.pages.languages import gettext
from btcpay.web.pages.listing import Listing
from btcpay.web.pages.qr import qr_svg
from schemas.requests import NEW_PRICED_LINK, load
from storage.models import PaymentLink
from storage.queries import links
from storage.values import Values

SUGGESTED = [f"suggested-{number}" for number in range(1, MOST_SUGGESTED + 1)]
LIMITS = [*AMOUNTS[1:], *SUGGESTED]  # which a link with a fixed price does not have
FIELDS, GOAL = [AMOUNTS[0], *LIMITS], "goal"
Sentences = dict[str, str]


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
    values: Any = {"url": url, "qr": qr_svg(url), "shown": shown, "most": most}
    far = raised(visit.service.db, link) if link.goal else None
    return visit.page("link.html", link=link, raised=far, **values)


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
    visit: Visit,
    status: int = 200,
    problem: str = "",
    wrong: Sentences | None = None,
    link: PaymentLink | None = None,
    typed: Mapping[str, str] | None = None,
) -> Response:
    """The form as it was typed, of a new link or of this one; `wrong`: a sentence by field."""
    values = {"wrong": wrong or {}, "problem": problem, "link": link, "suggested": SUGGESTED}
    typed = visit.form if typed is None else typed
    return visit.page("new_link.html", status, typed=typed, how=HOW, **values)


def show_edit(visit: Visit, id: str) -> Response:
    """The form as the link is, its amounts as the reader writes them."""
    link = visit.own(links.ANY_BY_ID, "lnk", id)
    typed = {name: getattr(link, name) or "" for name in (*TEXTS, *ASKS)}
    amounts = [link.min_amount, link.max_amount, *(link.suggested or "").split()]
    for name, amount in zip([GOAL, *LIMITS], [link.goal, *amounts], strict=False):
        if amount:
            typed[name] = formats.plain(Decimal(amount), link.currency, languages.current())
    return show_form(visit, link=link, typed=typed)


def make(visit: Visit, id: str = "") -> Response:
    """Leads to the link of this press, or to the changed one of this id (303).

    With a mistake it shows the form again.
    """
    link = visit.own(links.ANY_BY_ID, "lnk", id) if id else None
    typed, wrong = _typed(visit, link)
    if wrong:
        return show_form(visit, 400, wrong=wrong, link=link)
    wanted = load(NEW_PRICED_LINK, typed) | {name: typed.get(name, HOW[0]) for name in ASKS}
    wanted[_key(GOAL)] = typed.get(_key(GOAL))
    wanted["suggested"] = [typed[key] for key in map(_key, SUGGESTED) if key in typed]
    try:
        id = _made(visit, wanted) if link is None else _changed(visit, link, wanted)
    except TooLittle as refused:
        small = (name for name in FIELDS if 0 < typed.get(_key(name), 0) < refused.least)
        return show_form(visit, 400, wrong=dict.fromkeys(small, said(refused)), link=link)
    except CommandError:
        message = gettext("Each suggested amount must be within the limits, and there only once.")
        return show_form(visit, 400, wrong={SUGGESTED[0]: message}, link=link)
    except (TooMuch, PriceUnavailable) as error:
        return show_form(visit, STATUS[error.code], said(error), link=link)
    return visit.to(f"/links/{id}", done="made" if link is None else "changed")


def _key(name: str) -> str:
    """The name of an amount in the body of create-payment-link."""
    return f"{name}_usd"


def _typed(visit: Visit, link: PaymentLink | None) -> tuple[dict[str, Any], Sentences]:
    """The typed fields as a body of create-payment-link, and a sentence for each wrong field."""
    form = visit.form
    typed: dict[str, Any] = {
        name: form[name].replace("\r\n", "\n") for name in TEXTS if name in form
    }
    typed |= {name: form[name] for name in ASKS if form.get(name) in HOW}
    is_fixed = link is not None and link.amount is not None
    wrong = {}
    for name in () if is_fixed else [*(FIELDS if link is None else LIMITS), GOAL]:
        try:
            if name in form:
                typed[_key(name)] = visit.amount(form[name])
        except AmountRefused as refused:
            wrong[name] = str(refused)
    price, low, high = (typed.get(_key(name)) for name in AMOUNTS)
    if not (typed.get("title") or is_fixed or price or low or high or wrong):
        wrong["title"] = gettext("Give the link a title or an amount, so that customers know it.")
    if price is not None:
        message = gettext("Leave this empty if the price is fixed.")
        wrong |= {name: message for name in (*LIMITS, GOAL) if _key(name) in typed}
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


def _changed(visit: Visit, link: PaymentLink, wanted: dict[str, Any]) -> str:
    """Asks for a price only if amounts have changed, so that a text is changed without one."""
    named = [wanted.get("min_amount_usd"), wanted.get("max_amount_usd"), *wanted["suggested"]]
    stored = [link.min_amount, link.max_amount, *(link.suggested or "").split()]
    is_same = named == [amount and Decimal(amount) for amount in stored]
    prices = visit.service.prices
    price = None if is_same else live_price(prices, visit.now, link.currency)
    edit(visit.service.db, link, wanted, price)
    return link.id
