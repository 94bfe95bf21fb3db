"""Creates an invoice when a visitor clicks the button of a payment page."""

import hashlib
from collections.abc import Mapping

from flask import Response, request

from btcpay.checkout.link_cookie import LinkCookie
from btcpay.checkout.link_limits import refuse_busy_visitor, refuse_full_page
from btcpay.checkout.link_page import LinkRefused
from btcpay.checkout.payment_page import Page, Visitor
from btcpay.invoices import create, orders, quotes
from btcpay.values.money import amount_due
from btcpay.values.times import to_ms
from btcpay.web.admission import is_from_another_site, visitor_key
from btcpay.web.pages.languages import gettext, language_query
from btcpay.web.service import Service
from storage.models import Invoice
from storage.queries import invoices
from storage.values import Values


def redirect_to_invoice(
    service: Service,
    cookie: LinkCookie,
    page: Page,
    fields: Mapping[str, str],
) -> Response:
    """Redirects (303) to the invoice for the form's `fields`, and sets the cookie.

    The invoice is a new one, or an existing unpaid one. Raises LinkRefused if the page
    creates no more invoices, if a limit is reached, or if a page of another site sent the
    form. Raises InvalidRequest for an invalid amount, and PriceUnavailable if there is no
    exchange rate.
    """
    # Without this check, another site could make its visitors use up the link's limits.
    if is_from_another_site(request.headers, service.settings.base_url):
        message = gettext(
            "Another site asked for this payment. If you want to pay, please press the button."
        )
        raise LinkRefused(403, message)
    invoice_id = pay(service, page, _visitor_of(service, cookie, page, fields))
    # The URL is relative, so that it stays in the origin that the form's policy allows.
    url = f"../pay/{invoice_id}{language_query()}"
    response = Response(status=303, headers={"Location": url})
    cookie.remember(response, page.id, invoice_id)
    return response


def _visitor_of(
    service: Service,
    cookie: LinkCookie,
    page: Page,
    fields: Mapping[str, str],
) -> Visitor:
    """Returns the visitor who has sent this request with the form's `fields`."""
    last_invoice_id = cookie.last_invoice_id(page.id)
    next_invoice_id = None
    if last_invoice_id:
        next_invoice_id = cookie.next_invoice_id(last_invoice_id)
    return Visitor(
        key=visitor_key(service),
        amount_text=fields.get("amount", ""),
        form_invoice_id=cookie.invoice_id_of_form(page.id, fields.get("press", "")),
        last_invoice_id=last_invoice_id,
        next_invoice_id=next_invoice_id,
    )


def pay(service: Service, page: Page, visitor: Visitor) -> str:
    """Creates an invoice, or finds an unpaid one for the same order. Returns its id.

    1. Looks for an existing invoice.
    2. Checks the limits and fetches the exchange rate, while no database transaction is
       open.
    3. Creates the invoice in a transaction that locks the page's database row.

    Raises LinkRefused if the page creates no more invoices or a limit is reached,
    InvalidRequest for an invalid amount, and PriceUnavailable if there is no exchange
    rate.
    """
    order = page.order(service, visitor.amount_text)
    # This comes before the search for an existing invoice. A copy of this form may create
    # the invoice in between; both copies then have the same mark.
    mark = _mark(service, order, visitor)
    unpaid_id = _unpaid_id(service, page, order, visitor)
    if unpaid_id:
        return unpaid_id
    new_id = visitor.form_invoice_id
    counted_key = visitor.key
    if _has_paid(service, page, visitor):
        # An invoice after a paid one is not counted, so that a tablet on a counter can
        # serve one customer after another. Its id is derived from the paid invoice, so
        # that only one can follow it.
        new_id = visitor.next_invoice_id
        counted_key = None
    # The request is counted last, so that one that fails before does not count.
    refuse_busy_visitor(service, counted_key, mark, is_counted=False)
    refuse_full_page(service, page)
    quote = quotes.quote(service.prices, service.now(), order)
    refuse_busy_visitor(service, counted_key, mark)
    invoice_id = _create_once(service, page, visitor, quote, new_id)
    if invoice_id is None:
        # Another request has just created the one invoice that may follow the paid one.
        # The second attempt finds no paid invoice without a successor, so it is counted.
        return pay(service, page, visitor)
    return invoice_id


def _create_once(
    service: Service,
    page: Page,
    visitor: Visitor,
    quote: quotes.Quote,
    new_id: str | None,
) -> str | None:
    """Creates the invoice in a database transaction, and returns its id.

    If another request has just created the same invoice, returns the id of that one.
    Otherwise the new invoice gets the id `new_id`. If another invoice has this id, the
    new one gets a random id; but if `new_id` is `visitor.next_invoice_id`, creates
    nothing and returns None.
    """
    with service.db.write():
        page.lock(service, quote.order)
        unpaid_id = _unpaid_id(service, page, quote.order, visitor)
        if unpaid_id:
            return unpaid_id
        refuse_full_page(service, page)
        if not _exists(service, new_id):
            return _create(service, quote, new_id)
        if new_id == visitor.next_invoice_id:
            return None
        # The form's invoice is paid, or the form was sent again with another amount.
        return _create(service, quote, None)


def _create(service: Service, quote: quotes.Quote, id: str | None) -> str:
    """Creates the invoice, and returns its id. If `id` is None, the id is random."""
    network = service.settings.network
    invoice = create.new_invoice(service.db, network, service.now(), quote, id)
    return invoice.id


def _has_paid(service: Service, page: Page, visitor: Visitor) -> bool:
    """True if this browser's last invoice received money and has no successor yet."""
    if visitor.last_invoice_id is None or _exists(service, visitor.next_invoice_id):
        return False
    values: Values = {"id": visitor.last_invoice_id, "through": page.id}
    return service.db.get_or_none(invoices.PAID_TO, **values) is not None


def _exists(service: Service, invoice_id: str | None) -> bool:
    if invoice_id is None:
        return False
    return service.db.get_or_none(invoices.WHOLE, id=invoice_id) is not None


def _unpaid_id(
    service: Service,
    page: Page,
    order: orders.Order,
    visitor: Visitor,
) -> str | None:
    """Returns the id of this visitor's unpaid invoice for the same order, or None."""
    ids = [visitor.form_invoice_id, visitor.next_invoice_id]
    # If the page has a single payer, a newly loaded form must not create a second invoice.
    if page.is_for_one:
        ids.append(visitor.last_invoice_id)
    for invoice_id in ids:
        if invoice_id is None:
            continue
        row = still_to_pay(service, page, invoice_id)
        if row is None:
            continue
        is_same_amount = amount_due(row).amount == order.amount
        if is_same_amount and _has_same_payer_data(row, order.details):
            return invoice_id
    return None


def _has_same_payer_data(row: Invoice, details: Mapping[str, object]) -> bool:
    """True if the invoice has the name, the note and the e-mail address of `details`."""
    names = (column.name for column in Invoice.PERSONAL)
    return all(getattr(row, name) == details.get(name) for name in names)


def still_to_pay(service: Service, page: Page, invoice_id: str) -> Invoice | None:
    """Returns the page's invoice with this id if it waits for its first payment.

    Returns None if the page has no such invoice, if the invoice is no longer open or has
    expired, or if a payment to it was ever seen. The row has only the id, the amount and
    the payer's data.
    """
    values: Values = {"id": invoice_id, "through": page.id, "now": to_ms(service.now())}
    return service.db.get_or_none(invoices.UNTOUCHED, **values)


def _mark(service: Service, order: orders.Order, visitor: Visitor) -> str:
    """Returns a text that is the same for all copies of one form.

    The rate limit counts all copies of a form as one request. Returns "" if the form
    does not come from the page, or if its invoice exists already.
    """
    form_invoice_id = visitor.form_invoice_id
    if form_invoice_id is None or _exists(service, form_invoice_id):
        return ""
    press = repr((form_invoice_id, order.amount, sorted(order.details.items())))
    return hashlib.sha256(press.encode()).hexdigest()
