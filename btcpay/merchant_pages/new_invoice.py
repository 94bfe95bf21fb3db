"""An invoice for an absent customer: made by a form, then sent as the link to its page."""

import re
from decimal import Decimal

from flask import Response

from btcpay.invoices import create
from btcpay.merchant_pages.visit import Visit
from btcpay.values.errors import CommandError, InvalidRequest, PriceUnavailable, TooLittle, TooMuch
from btcpay.web.pages.forms import AmountRefused, said
from btcpay.web.pages.languages import gettext
from storage.queries import invoices

# Hours that the price holds and the page may be paid, as the form offers them.
LIVES = {hours: Decimal(hours) for hours in ("1", "24", "72", "168", "720")} | {"never": None}
DAY = "24"
E_MAIL = re.compile(r"[^@\s]+@[^@\s]+")


def show_form(
    visit: Visit, status: int = 200, problem: str = "", wrong: dict[str, str] | None = None
) -> Response:
    """`wrong`: a sentence by the name of the field."""
    values = {"typed": visit.form, "wrong": wrong or {}, "problem": problem, "day": DAY}
    return visit.page("new_invoice.html", status, **values)


def make(visit: Visit) -> Response:
    """Leads to the invoice of this press (303), or shows the form again with the mistakes."""
    form, wrong = visit.form, {}
    amount = Decimal(0)
    try:
        amount = visit.amount(form.get("amount", ""))
    except AmountRefused as refused:
        wrong["amount"] = str(refused)
    if "email" in form and not E_MAIL.fullmatch(form["email"].strip()):
        wrong["email"] = gettext("Enter an e-mail address such as name@example.com.")
    if wrong:
        return show_form(visit, 400, wrong=wrong)
    try:
        id = _made(visit, amount)
    except (TooLittle, TooMuch) as refused:
        return show_form(visit, 400, wrong={"amount": said(refused)})
    except (InvalidRequest, CommandError) as refused:
        return show_form(visit, 400, said(refused))
    except PriceUnavailable as error:
        return show_form(visit, 503, said(error))
    return visit.to(f"/invoices/{id}", done="made")


def _made(visit: Visit, amount: Decimal) -> str:
    """The id of the invoice of this press.

    Raises PriceUnavailable, InvalidRequest, CommandError.
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
    order = visit.order(wanted, reference=form.get("reference"))
    quote = create.quote(service.db, service.prices, visit.now, order)
    with visit.once("inv", invoices.WHOLE) as (id, is_made):
        if not is_made:
            create.new_invoice(service.db, service.settings.network, visit.now, quote, id)
    return id
