"""The merchant's form for a new bill."""

from datetime import date
from decimal import Decimal
from typing import NamedTuple

from flask import Response

from btcpay.invoices.orders import Order, checked_email
from btcpay.parts.bills import actions, queries
from btcpay.parts.bills.calendar import EVERY
from btcpay.values.amounts import parse_whole_number
from btcpay.values.errors import CommandError, InvalidRequest, TooLittle, TooMuch
from btcpay.values.texts import TextRefused
from btcpay.web.pages.forms import AmountRefused, error_message
from btcpay.web.pages.languages import gettext
from btcpay.web.pages.visit import Visit


def show_form(
    visit: Visit,
    status: int = 200,
    problem: str = "",
    field_errors: dict[str, str] | None = None,
) -> Response:
    """Returns the page with the form for a new bill, with the HTTP status `status`.

    `field_errors` has an error message for each invalid field, by the field's name.
    `problem` is an error message that is about no single field; "" if there is none.
    """
    return visit.page(
        "new_bill.html",
        status,
        entries=visit.form,
        field_errors=field_errors or {},
        problem=problem,
        due_days=actions.DUE_DAYS,
    )


def make(visit: Visit) -> Response:
    """Creates a bill and redirects to it (303), or returns the form with the errors.

    If the browser sends the same form twice, only one bill is created.
    """
    service = visit.service
    entry = _parse_form(visit)
    if entry.field_errors:
        return show_form(visit, 400, field_errors=entry.field_errors)
    try:
        order = _order_of(visit, entry.amount)
        actions.refuse_unpayable(service.prices, visit.now, order)
    except (TooLittle, TooMuch) as error:
        return show_form(visit, 400, field_errors={"amount": error_message(error)})
    except TextRefused as error:
        return show_form(visit, 400, field_errors={error.what: error_message(error)})
    except (InvalidRequest, CommandError) as error:
        return show_form(visit, 400, error_message(error))
    with visit.create_once("bil", queries.BY_ID) as (id, exists):
        if not exists:
            actions.make(service.db, order, entry.terms, visit.now, id)
    return visit.redirect(f"/bills/{id}", done="made")


def _order_of(visit: Visit, amount: Decimal) -> Order:
    """Returns the order for the amount and the texts in the form.

    Raises InvalidRequest or CommandError if a field is invalid.
    """
    form = visit.form
    description = form.get("description")
    if description:
        description = description.replace("\r\n", "\n")
    order_data = {
        "amount": amount,
        "customer_email": form.get("email", "").strip() or None,
        "description": description,
    }
    order: Order = visit.order(order_data, reference=form.get("reference"))
    return order


class _Entry(NamedTuple):
    """The amount and the terms in the form, with an error message for each invalid field.

    `field_errors` has the messages by the field's name. If it has any, the amount and the
    terms must not be used.
    """

    amount: Decimal
    terms: actions.Terms
    field_errors: dict[str, str]


def _parse_form(visit: Visit) -> _Entry:
    """Parses the amount and the terms in the form, and checks its e-mail address."""
    form = visit.form
    field_errors: dict[str, str] = {}
    amount = Decimal(0)
    try:
        amount = visit.amount(form.get("amount", ""))
    except AmountRefused as error:
        field_errors["amount"] = str(error)
    try:
        if "email" in form:
            checked_email(form["email"])
    except CommandError:
        field_errors["email"] = gettext(
            "Enter an e-mail address such as name@example.com."
        )
    terms = _parse_terms(visit, field_errors)
    return _Entry(amount, terms, field_errors)


def _parse_terms(visit: Visit, field_errors: dict[str, str]) -> actions.Terms:
    """Parses the terms in the form. Adds an error to `field_errors` for each invalid field."""
    form = visit.form
    due_days = _parse_days(form.get("due", str(actions.DUE_DAYS)))
    if due_days is None:
        field_errors["due"] = gettext("Enter a number of days from 0 to 3650.")
        due_days = 0
    every = None
    if form.get("every") in EVERY:
        every = form["every"]
    until = None
    if every and "until" in form:
        until = _parse_last_day(visit, form["until"], field_errors)
    return actions.Terms(due_days, every, until)


def _parse_days(text: str) -> int | None:
    """Returns the number of days; None if it is no number from 0 to MOST_DAYS."""
    try:
        return parse_whole_number(text, 0, actions.MOST_DAYS)
    except ValueError:
        return None


def _parse_last_day(
    visit: Visit, text: str, field_errors: dict[str, str]
) -> date | None:
    """Parses the last day of a series.

    If the text is no date or the day is in the past, returns None and adds an error to
    `field_errors`.
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day < visit.now.astimezone(visit.zone).date():
        field_errors["until"] = gettext(
            "Enter a date such as 2036-12-31, today or later."
        )
        return None
    return day
