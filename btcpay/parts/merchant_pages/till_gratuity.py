"""The till's page on which the customer chooses a gratuity."""

from flask import Response

from btcpay.parts.merchant_pages.till_sale import Sale, gratuity_of, gratuity_percents
from btcpay.parts.merchant_pages.visit import Visit


def must_choose_gratuity(visit: Visit) -> bool:
    """True if the customer, not the cashier, chooses a gratuity, and has not done so yet."""
    if not gratuity_percents(visit) or visit.session.gratuity_by_cashier:
        return False
    return "tip" not in visit.form


def ask_gratuity(visit: Visit) -> Response:
    """Shows a choice of gratuities. The cashier turns this page to the customer.

    The buttons of the page create the invoice. Raises AmountRefused if the amount in
    the URL is invalid.
    """
    amount = visit.written_amount(visit.query.get("amount", ""))
    return show_gratuities(visit, Sale(amount, visit.query.get("note", "")))


def show_gratuities(
    visit: Visit,
    sale: Sale,
    status: int = 200,
    error: str = "",
) -> Response:
    """Shows the choice of gratuities for the sale, with the HTTP status `status`.

    `error` is the message about an entered gratuity; "" if there is none.
    """
    gratuities = [
        (int(percent), gratuity_of(visit, sale.amount, percent))
        for percent in gratuity_percents(visit)
    ]
    entries = {}
    if error:
        entries = visit.form
    return visit.page(
        "till_gratuity.html",
        status,
        sale=sale,
        gratuities=gratuities,
        brand=visit.pages.brand(visit.merchant_id),
        press_before=visit.query.get("press") or visit.form.get("press"),
        entries=entries,
        error=error,
    )
