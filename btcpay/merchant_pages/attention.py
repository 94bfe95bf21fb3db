"""Invoices that need the merchant, most at stake first; one press sets small ones aside."""

from contextlib import suppress
from decimal import Decimal

from flask import Response

from btcpay.invoices import by_hand
from btcpay.merchant_pages.visit import Visit
from btcpay.notify.mail.texts import mailto
from btcpay.values.errors import Refused
from btcpay.values.ids import is_id
from btcpay.values.money import of_minor, to_minor, value_of
from btcpay.web.pages.forms import AmountRefused
from btcpay.web.pages.languages import gettext
from storage.queries import attentions, invoices, receivers
from storage.queries.lists import merchant_lists as queries
from storage.values import Values

NEEDING = 25  # invoices on a page
AT_ONCE = 100  # that one press sets aside: a second of work
# Of these nothing can be accepted: the invoice is paid, or its payment is not in the chain.
ONLY_SET_ASIDE = ("too_much", "reorganised", "vanished")
FIRST = (2**62, "")  # a stake and an id


def show(visit: Visit, status: int = 200, wrong: str = "") -> Response:
    """Each invoice that needs attention, why, what is at stake, and what can be done."""
    own, db = visit.merchant_id, visit.service.db
    after = visit.query.get("after", "")
    place = (
        db.row(queries.WANTING_PLACE, merchant_id=own, id=after) if is_id("inv", after) else None
    )
    stake_minor, id = (place.stake_minor, after) if place else FIRST
    rows = db.rows(
        queries.WANTING, merchant_id=own, stake_minor=stake_minor, id=id, limit=NEEDING + 1
    )
    shown = rows[:NEEDING]
    seller = visit.pages.brand(visit.merchant_id).seller if shown else ""
    mail = db.row(receivers.MAIL_OF, merchant_id=own) if shown else None
    language, pages = mail.language if mail else "en", visit.service.settings.base_url
    mailtos = {
        row.id: mailto(row, f"{pages}/pay/{row.id}", seller, language)
        for row in shown
        if row.customer_email
    }
    return visit.page(
        "attention.html",
        status,
        rows=shown,
        of_minor=of_minor,
        difference_of=_difference,
        mailtos=mailtos,
        next=shown[-1].id if len(rows) > NEEDING else None,
        is_first=place is None,
        only_set_aside=ONLY_SET_ASIDE,
        wrong=wrong,
        typed=visit.form if wrong else {},
        number=visit.query.get("number", ""),
    )


def _difference(row: invoices.InvoiceWith) -> Decimal:
    """The excess (or shortfall, below 0) in the invoice's currency; 0 where the stake says it."""
    if row.attention in ONLY_SET_ASIDE:
        return Decimal(0)
    sats, price = row.received_sats - row.amount_sats, Decimal(row.price)
    value = value_of(abs(sats), price, row.currency)
    return value if sats > 0 else -value


def set_small_aside(visit: Visit) -> Response:
    """Sets aside invoices with less at stake than the typed amount, each in its own transaction.

    An invoice whose stake has grown in between is left alone.
    """
    currency, service = visit.currency, visit.service
    try:
        amount = visit.amount(visit.form.get("amount", ""))
    except AmountRefused as refused:
        return show(visit, 400, wrong=str(refused))
    below, db, settings = to_minor(amount, currency), service.db, service.settings
    own: Values = {"merchant_id": visit.merchant_id, "currency": currency}
    small = db.rows(attentions.BELOW, **own | {"below_minor": below, "limit": AT_ONCE})
    number, reason = 0, gettext("Small amount, set aside with others")
    for row in small:
        id = row.invoice_id
        with suppress(Refused):
            by_hand.dismiss(db, settings, id, reason, visit.now, below_minor=below)
            number += 1
    return visit.to("/attention", done="aside", number=number)
