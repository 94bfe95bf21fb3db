"""The till: a form for an amount, a sale's QR code until it is paid, and the last sales."""

import re
from decimal import Decimal
from typing import Any

from flask import Response

from btcpay.checkout.invoice_page import invoice_values
from btcpay.checkout.notices import Notices, returned_sats
from btcpay.checkout.snapshot import is_taken_back, snapshot_of
from btcpay.invoices import create, orders, quotes
from btcpay.merchants import branding
from btcpay.parts.merchant_pages.till_gratuity import (
    must_choose_gratuity,
    show_gratuities,
)
from btcpay.parts.merchant_pages.till_list import last_sales
from btcpay.parts.merchant_pages.till_sale import (
    LONGEST_SUM,
    GratuityRefused,
    Sale,
    gratuity_percents,
    read_gratuity,
    read_sale,
)
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.amounts import parse_whole_number
from btcpay.values.errors import InvalidRequest, NotFound, PriceUnavailable
from btcpay.values.money import places_of, value_of
from btcpay.values.statuses import CheckoutState
from btcpay.values.texts import TextRefused
from btcpay.values.times import to_ms
from btcpay.web.pages.forms import AmountRefused, error_message
from btcpay.web.pages.qr import qr_svg
from storage.queries import invoices, merchants
from storage.values import Values

# A quarter of an hour: the exchange rate is fixed only while the customer is there.
LIFE_HOURS = Decimal("0.25")
MOST_GRATUITIES = 4
MOST_GRATUITY_PERCENT = 50
# U+066A is the Arabic percent sign, U+060C the Arabic comma.
_BETWEEN_PERCENTS = re.compile("[,%\u066a\u060c]")


def press(visit: Visit) -> Response:
    """Creates an invoice from the till's form, and redirects (303) to the invoice.

    If the customer still has to choose a gratuity, redirects to the page for that
    instead. Shows an invalid form again. If the browser sends the same form twice, only
    one invoice is created.
    """
    service = visit.service
    try:
        sale = read_sale(visit)
    except AmountRefused as refusal:
        return show_form(
            visit,
            400,
            error=error_message(refusal),
            readings=refusal.readings,
        )
    # The price is asked for first, so that no customer chooses a gratuity in vain.
    try:
        quote = quotes.quote(service.prices, visit.now, _order(visit, sale))
    except GratuityRefused as refusal:
        return show_gratuities(visit, sale, 400, error=error_message(refusal))
    except InvalidRequest as refusal:
        return show_form(visit, 400, error=error_message(refusal))
    except TextRefused as refusal:
        return show_form(visit, 400, problem=error_message(refusal))
    except PriceUnavailable as error:
        return show_form(visit, 503, problem=error_message(error))
    if must_choose_gratuity(visit):
        return visit.redirect(
            "/till/tip",
            amount=sale.amount,
            note=sale.note,
            press=visit.form.get("press"),
        )
    return visit.redirect(f"/till/{_invoice_of_press(visit, quote)}")


def _order(visit: Visit, sale: Sale) -> orders.Order:
    """Returns the order for the sale's amount plus the gratuity.

    Raises GratuityRefused if the entered gratuity is invalid, and InvalidRequest or
    CommandError if another field is.
    """
    gratuity = read_gratuity(visit, sale.amount)
    order_data = {
        "amount": sale.amount + gratuity,
        "description": sale.note,
        "expires_in_hours": LIFE_HOURS,
    }
    return visit.order(order_data, gratuity=str(gratuity))


def set_gratuities(visit: Visit) -> Response:
    """Stores the percentages that the till offers, and whether the cashier chooses.

    The form has whole percentages, such as `5 10` or `5 %, 10 %`. Shows an invalid form
    again.
    """
    words = _BETWEEN_PERCENTS.sub(" ", visit.form.get("tips", "")).split()
    if len(words) > MOST_GRATUITIES:
        return show_form(visit, 400, has_gratuity_error=True)
    try:
        percents = [
            parse_whole_number(word, 1, MOST_GRATUITY_PERCENT) for word in words
        ]
    except ValueError:
        return show_form(visit, 400, has_gratuity_error=True)
    columns: Values = {
        "id": visit.merchant_id,
        "gratuity_percents": " ".join(map(str, percents)) or None,
        "gratuity_by_cashier": int("cashier" in visit.form),
    }
    visit.service.db.run(merchants.SET_GRATUITIES, **columns)
    return visit.redirect("/till", done="saved")


def show_manifest(visit: Visit) -> Response:
    """Returns the till's Web Application Manifest (W3C).

    With this file, a browser installs the till as an app.
    """
    manifest = visit.page("manifest.json", background=branding.LIGHT_PAGE)
    manifest.mimetype = "application/manifest+json"
    del manifest.headers["Link"]  # a manifest has no style sheet
    return manifest


def show_invoice(visit: Visit, id: str) -> Response:
    """Shows the QR code of a sale, and whether it is paid. The page's script polls the status.

    Raises NotFound if the invoice is not a sale of the till.
    """
    snapshot = snapshot_of(visit.service, id, visit.merchant_id)
    if snapshot.row.gratuity is None:
        raise NotFound("this is no sale of the till")
    settings = visit.service.settings
    brand = visit.pages.brand(visit.merchant_id)
    notices = Notices(
        has_vanished=is_taken_back(settings, snapshot.row) or snapshot.has_vanished,
        returned_sats=returned_sats(visit.service.db, snapshot),
    )
    page = invoice_values(snapshot, brand, notices)
    # If none came too late or in excess, all that were received.
    beyond_sats = page["overpaid_sats"] or page["received_sats"]
    receipt_qr = None
    if page["state"] in (CheckoutState.SEEN, CheckoutState.PAID):
        receipt_qr = qr_svg(f"{settings.base_url}/pay/{id}")
    return visit.page(
        "till_invoice.html",
        page=page,
        brand=brand,
        gratuity=Decimal(snapshot.row.gratuity),
        beyond=value_of(beyond_sats, page["price"], page["currency"]),
        receipt_qr=receipt_qr,
        sales=last_sales(visit, id),
    )


def show_form(visit: Visit, status: int = 200, **values: Any) -> Response:
    """Shows the form for an amount, and the last sales.

    The URL parameter `shown` is the id of a sale that another page on the screen shows
    already.

    `status` is the HTTP status. `values` are further values for the template:

    - `error`: the message about an invalid amount.
    - `readings`: the possible meanings of an ambiguous amount.
    - `has_gratuity_error`: True if the percentages in the form for gratuities are invalid.
    - `problem`: a message that is about no single field.
    """
    entries = {}
    if status != 200:
        entries = visit.form
    return visit.page(
        "till.html",
        status,
        entries=entries,
        percents=[int(percent) for percent in gratuity_percents(visit)],
        longest_sum=LONGEST_SUM,
        gratuity_by_cashier=visit.session.gratuity_by_cashier,
        places=places_of(visit.currency),
        sales=last_sales(visit, visit.query.get("shown", "")),
        now_ms=to_ms(visit.now),
        **values,
    )


def _invoice_of_press(visit: Visit, quote: quotes.Quote) -> str:
    """Returns the id of this form's invoice: the one that it created before, or a new one.

    A new one is also created if the existing invoice is not waiting for its first
    payment any more: then the cashier has returned to the form with the browser's back
    button, for the next customer.
    """
    service = visit.service
    with visit.create_once("inv", invoices.WHOLE) as (id, exists):
        new_id: str | None = id
        if exists:
            parameters: Values = {
                "id": id,
                "merchant_id": visit.merchant_id,
                "now": to_ms(visit.now),
            }
            if service.db.get_or_none(invoices.UNTOUCHED_OF_MERCHANT, **parameters):
                return id
            new_id = None  # a random one
        network = service.settings.network
        return create.new_invoice(service.db, network, visit.now, quote, new_id).id
