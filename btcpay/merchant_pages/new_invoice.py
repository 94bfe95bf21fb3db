"""An invoice for a customer who is not there: made by a form, then sent as the link of its page."""

import re
from decimal import Decimal
from typing import Any

from flask import Response

from btcpay.checkout.amounts import refuse_dust
from btcpay.invoices import create
from btcpay.invoices.links import most
from btcpay.merchant_pages.visit import Visit
from btcpay.values.errors import CommandError, InvalidRequest, PriceUnavailable, TooMuch
from btcpay.web.pages.forms import AmountRefused, read_amount, said
from btcpay.web.pages.languages import gettext
from schemas.requests import NEW_PRICED_INVOICE, load
from storage.queries import invoices

# Hours that the price holds and the page may be paid, as the form offers them.
LIVES = {hours: Decimal(hours) for hours in ("1", "24", "72", "168", "720")} | {"never": None}
DAY = "24"
E_MAIL = re.compile(r"[^@\s]+@[^@\s]+")


def show_form(
    visit: Visit, status: int = 200, problem: str = "", wrong: dict[str, str] | None = None
) -> Response:
    """`wrong`: by the field, a sentence."""
    values = {"typed": visit.form, "wrong": wrong or {}, "problem": problem, "day": DAY}
    return visit.page("new_invoice.html", status, **values)


def make(visit: Visit) -> Response:
    """Leads to the invoice of this press (303), or shows the form again with what is wrong."""
    form, wrong = visit.form, {}
    amount = Decimal(0)
    try:
        amount = read_amount(form.get("amount", ""), visit.currency, amount, most(visit.currency))
    except AmountRefused as refused:
        wrong["amount"] = str(refused)
    if "email" in form and not E_MAIL.fullmatch(form["email"].strip()):
        wrong["email"] = gettext("Enter an e-mail address such as name@example.com.")
    if wrong:
        return show_form(visit, 400, wrong=wrong)
    try:
        id = _made(visit, amount)
    except (AmountRefused, TooMuch) as refused:
        return show_form(visit, 400, wrong={"amount": said(refused)})
    except (InvalidRequest, CommandError) as refused:
        return show_form(visit, 400, said(refused))
    except PriceUnavailable as error:
        return show_form(visit, 503, said(error))
    return visit.to(f"/invoices/{id}", done="made")


def _made(visit: Visit, amount: Decimal) -> str:
    """The id of the invoice of this press.

    Raises PriceUnavailable, AmountRefused, InvalidRequest, CommandError.
    """
    service, form = visit.service, visit.form
    lasts = form.get("lasts", DAY)
    if lasts not in LIVES:
        raise InvalidRequest("the form names no deadline")
    description = form.get("description")
    wanted = {
        "amount": amount,
        "description": description and description.replace("\r\n", "\n"),
        "customer_email": form["email"].strip() if "email" in form else None,
        "expires_in_hours": LIVES[lasts],
    }
    order, price = priced(visit, wanted, form.get("reference"))
    with visit.once("inv", invoices.WHOLE) as (id, is_made):
        if not is_made:
            network = service.settings.network
            create.new_invoice(service.db, network, visit.now, order._replace(id=id), price)
    return id


def priced(
    visit: Visit, wanted: dict[str, Any], reference: str | None = None
) -> tuple[create.Order, create.Price]:
    """What a form asks for, in its currency, and the price of now, at which it can be sent.

    Raises PriceUnavailable, AmountRefused, InvalidRequest, CommandError.
    """
    service, owner_id, currency = visit.service, visit.merchant_id, visit.currency
    order = create.order_of(owner_id, load(NEW_PRICED_INVOICE, wanted), currency, reference)
    price = create.live_price(service.db, service.prices, owner_id, visit.now, currency)
    refuse_dust(service, owner_id, order.amount, most(currency), currency, price.in_currency)
    return order, price
