"""The list of invoices that need attention, and its form."""

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal

from flask import Response

from btcpay import hooks
from btcpay.invoices import manual
from btcpay.parts.merchant_pages import queries
from btcpay.parts.merchant_pages.invoice import OWES_NOTHING, mailtos, reason_error
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.errors import ChangeRefused
from btcpay.values.money import (
    of_minor,
    to_minor,
    value_of,
)
from btcpay.web.pages.forms import AmountRefused
from btcpay.web.pages.languages import gettext
from btcpay.web.pages.visit import Line
from storage.queries import attentions
from storage.values import Values

# The maximum number of invoices on the page, sorted by the amount in question, highest first.
# Further invoices appear once these are decided.
NEEDING = 50
# The maximum number of invoices that one click sets aside, which takes a second.
AT_ONCE = 100
# With these reasons for attention, nothing can be accepted: the invoice is paid, or its
# payment is not in the best chain.
ONLY_SET_ASIDE = ("too_much", "reorganised", "vanished", "refunded_twice", "older_coin")


def show(visit: Visit, status: int = 200, error: str = "") -> Response:
    """Shows the invoices that need attention, with the HTTP status `status`.

    The page has a form that sets aside all invoices below an amount. `error` is the
    message about that amount; "" if there is none.
    """
    db = visit.service.db
    rows = db.rows(queries.WANTING, merchant_id=visit.merchant_id, limit=NEEDING + 1)
    most_shown = None
    if len(rows) > NEEDING:
        most_shown = NEEDING
    entries: Mapping[str, str] = {}
    if error:
        entries = visit.form
    return visit.page(
        "attention.html",
        status,
        rows=rows[:NEEDING],
        most_shown=most_shown,
        of_minor=of_minor,
        difference_of=_excess,
        mailtos=mailtos(visit, rows),
        only_set_aside=ONLY_SET_ASIDE,
        owes_nothing=OWES_NOTHING,
        lines=_lines_of_parts(visit),
        has_cards=any(part.invoice_card for part in hooks.of(hooks.MerchantViews)),
        error=error,
        entries=entries,
        number=visit.query.get("number", ""),
        reason_error=reason_error(visit),
    )


def _lines_of_parts(visit: Visit) -> list[Line]:
    """Returns the sentences that parts (optional plug-ins) add to this page."""
    lines: list[Line] = []
    for part in hooks.of(hooks.MerchantViews):
        if part.inbox_lines:
            lines += part.inbox_lines(visit)
    return lines


def _excess(row: queries.ListedInvoice) -> Decimal:
    """Returns by how much an invoice is overpaid, in its currency.

    The result is negative if the invoice is underpaid. It is 0 if the only possible
    decision is to set the invoice aside. The page then shows the whole amount in
    question.
    """
    if row.attention in ONLY_SET_ASIDE:
        return Decimal(0)
    excess_sats = row.came_sats - row.amount_sats
    value = value_of(abs(excess_sats), Decimal(row.price), row.currency)
    if excess_sats > 0:
        return value
    return -value


def set_small_aside(visit: Visit) -> Response:
    """Sets aside the invoices that need attention because of a small amount.

    An amount is small if it is less than the amount that the merchant has entered. This
    is about the amount in question, for example the missing one, not about the whole
    amount of an invoice. One call sets aside at most AT_ONCE invoices, each in its own
    database transaction. An invoice is skipped if its amount in question has grown
    meanwhile.
    """
    currency = visit.currency
    service = visit.service
    try:
        amount = visit.amount(visit.form.get("amount", ""))
    except AmountRefused as refusal:
        return show(visit, 400, error=str(refusal))
    below_minor = to_minor(amount, currency)
    parameters: Values = {
        "merchant_id": visit.merchant_id,
        "currency": currency,
        "below_minor": below_minor,
        "limit": AT_ONCE,
    }
    rows = service.db.rows(attentions.BELOW, **parameters)
    number = 0
    reason = gettext("Small amount, set aside with others")
    for row in rows:
        with suppress(ChangeRefused):
            manual.dismiss(
                service.db,
                service.settings,
                row.invoice_id,
                reason,
                visit.now,
                below_minor=below_minor,
            )
            number += 1
    return visit.redirect("/attention", done="aside", number=number)
