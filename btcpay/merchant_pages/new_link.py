"""The form that makes a payment link: a fixed price, or what the customer chooses within bounds."""

from collections.abc import Mapping
from typing import Any

from flask import Response

from btcpay.invoices.links import new_link
from btcpay.merchant_pages.amount_field import AmountRefused, typed_usd
from btcpay.merchant_pages.visit import Visit
from btcpay.web.pages.languages import gettext
from schemas.requests import NEW_PAYMENT_LINK, load
from storage.queries import links, merchants

AMOUNTS = ("amount_usd", "min_amount_usd", "max_amount_usd")
Wrong = dict[str, str]  # by the field: a sentence
EMPTY: Mapping[str, str] = {}


def show_form(visit: Visit) -> Response:
    """An empty form."""
    return _form(visit)


def make(visit: Visit) -> Response:
    """Leads to the link of this press (303), or shows the form again with what is wrong."""
    typed, wrong = _typed(visit.form)
    if wrong:
        return _form(visit, 400, visit.form, wrong)
    return visit.to(f"/links/{_made(visit, load(NEW_PAYMENT_LINK, typed))}", done="made")


def _form(
    visit: Visit, status: int = 200, typed: Mapping[str, str] = EMPTY, wrong: Wrong | None = None
) -> Response:
    return visit.page("new_link.html", status, typed=typed, wrong=wrong or {})


def _typed(form: Mapping[str, str]) -> tuple[dict[str, Any], Wrong]:
    """What was typed, as a body of create-payment-link has it, and what is wrong with it."""
    typed: dict[str, Any] = {
        name: form[name].replace("\r\n", "\n") for name in ("title", "description") if name in form
    }
    wrong = {}
    for name in AMOUNTS:
        try:
            if name in form:
                typed[name] = typed_usd(form[name])
        except AmountRefused as refused:
            wrong[name] = str(refused)
    price, low, high = (typed.get(name) for name in AMOUNTS)
    if price is not None and (low or high):
        told = gettext("Leave this empty where the price is fixed.")
        wrong |= {name: told for name in AMOUNTS[1:] if name in typed}
    elif low and high and low > high:
        wrong["max_amount_usd"] = gettext("This must not be less than the least amount.")
    return typed, wrong


def _made(visit: Visit, wanted: dict[str, Any]) -> str:
    """The id of the link of this press: of two copies the second waits, and finds the first's."""
    db, id = visit.service.db, visit.id_of_press("lnk")
    with db.write():
        db.only(merchants.LOCKED, id=visit.merchant_id)
        if db.row(links.ANY_BY_ID, id=id) is None:
            new_link(db, visit.now, visit.merchant_id, wanted | {"id": id})
    return id
