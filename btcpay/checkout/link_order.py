"""Creates an invoice when a visitor clicks the button of a payment page.

Limits keep visitors from creating too many invoices.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from flask import Response, request

from btcpay.checkout.link_cookie import LinkCookie
from btcpay.checkout.link_page import LinkRefused
from btcpay.invoices import create, orders, quotes
from btcpay.values.money import amount_due
from btcpay.values.times import to_ms
from btcpay.web.admission import is_from_another_site, visitor_key
from btcpay.web.pages.languages import gettext, language_query
from btcpay.web.rate_limits import link_invoices
from btcpay.web.service import Service
from storage.models import Invoice
from storage.queries import invoices
from storage.statement import Typed
from storage.values import Values

# How long an unpaid invoice counts towards its link's limit, after its creation or after its page
# was last open. So abandoned invoices do not keep others from paying for long.
LOOKED_AT_MS = 10 * 60_000


class Page(Protocol):
    """A page that creates invoices: of a payment link, or of a part (optional plug-in).

    - `is_for_one`: True if the page has a single payer. Then the page's button leads
      back to the last invoice that the browser created, while that invoice is unpaid.
    - `unpaid_counts`: the query about the page's unpaid invoices. It returns their number,
      the earliest of the times at which their pages were last open, and the earliest of
      the times at which they expire. The times are in unix milliseconds.
    """

    is_for_one: bool

    @property
    def id(self) -> str: ...
    @property
    def unpaid_counts(self) -> Typed[tuple[int, int | None, int | None]]: ...
    def order(self, service: Service, text: str) -> orders.Order:
        """Returns the order from which an invoice is created.

        The order's amount is fixed by the page, or is the one that the payer typed
        (`text`). Raises AmountRefused if `text` is no valid amount, and LinkRefused if
        the page creates no more invoices.
        """

    def lock(self, service: Service, order: orders.Order) -> None:
        """Locks the page's database row until the caller's transaction ends.

        Raises LinkRefused if the page creates no invoice for `order` any more.
        """


@dataclass(frozen=True)
class Visitor:
    """The visitor who presses the button.

    - `address`: the rate-limit key that counts the visitor's invoices; None if there is
      no limit.
    - `amount_text`: the amount as the visitor typed it.
    - `form_id`: the id of the invoice that this form creates; None if the form does not
      come from the page.
    - `last_id`: the id of the last invoice that this browser created on the page; None
      if it created none.
    - `next_id`: the id of the invoice that may follow `last_id` once that one is paid.
      This one invoice does not count towards the visitor's limit. None if `last_id` is
      None.
    """

    address: str | None
    amount_text: str
    form_id: str | None
    last_id: str | None
    next_id: str | None


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
    form = fields.get("press", "")
    text = fields.get("amount", "")
    form_id = cookie.invoice_id_of_form(page.id, form)
    last_id = cookie.last_invoice_id(page.id)
    next_id = None
    if last_id:
        next_id = cookie.next_invoice_id(last_id)
    # Without this check, another site could make its visitors use up the link's limits.
    if is_from_another_site(request.headers, service.settings.base_url):
        message = gettext(
            "Another site asked for this payment. If you want to pay, please press the button."
        )
        raise LinkRefused(403, message)
    visitor = Visitor(visitor_key(service), text, form_id, last_id, next_id)
    invoice_id = pay(service, page, visitor)
    # The URL is relative, so that it stays in the origin that the form's policy allows.
    url = f"../pay/{invoice_id}{language_query()}"
    response = Response(status=303, headers={"Location": url})
    cookie.remember(response, page.id, invoice_id)
    return response


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
    promised_id = visitor.form_id
    address = visitor.address
    if _has_paid(service, page, visitor):
        # An invoice after a paid one is not counted, so that a tablet on a counter can
        # serve one customer after another. Its id is derived from the paid invoice, so
        # that only one can follow it.
        promised_id = visitor.next_id
        address = None
    _refuse_busy_visitor(service, address, mark, is_counted=False)
    _refuse_full_page(service, page)
    quote = quotes.quote(service.prices, service.now(), order)
    _refuse_busy_visitor(service, address, mark)
    invoice_id = _create_once(service, page, visitor, quote, promised_id)
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
    promised_id: str | None,
) -> str | None:
    """Creates the invoice in a database transaction, and returns its id.

    If another request has just created the same invoice, returns the id of that one.
    The invoice gets the id `promised_id` if no invoice has it yet. Otherwise the result
    depends on `promised_id`: if it is `visitor.next_id`, creates nothing and returns
    None; else the invoice gets a random id.
    """
    with service.db.write():
        page.lock(service, quote.order)
        unpaid_id = _unpaid_id(service, page, quote.order, visitor)
        if unpaid_id:
            return unpaid_id
        _refuse_full_page(service, page)
        if not _exists(service, promised_id):
            return _create(service, quote, promised_id)
        if promised_id == visitor.next_id:
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
    if visitor.last_id is None or _exists(service, visitor.next_id):
        return False
    last: Values = {"id": visitor.last_id, "through": page.id}
    return service.db.get_or_none(invoices.PAID_TO, **last) is not None


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
    ids = [visitor.form_id, visitor.next_id]
    # If the page has a single payer, a newly loaded form must not create a second invoice.
    if page.is_for_one:
        ids.append(visitor.last_id)
    for invoice_id in filter(None, ids):
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
    """Returns the page's invoice with this id, if it waits for its first payment.

    Returns None if the invoice is no longer open, if it has expired, or if a payment to
    it was ever seen. The row has only the id, the amount and the payer's data.
    """
    values: Values = {"id": invoice_id, "through": page.id, "now": to_ms(service.now())}
    return service.db.get_or_none(invoices.UNTOUCHED, **values)


def _mark(service: Service, order: orders.Order, visitor: Visitor) -> str:
    """Returns a text that is the same for all copies of one form.

    The rate limit counts copies of a form once. Returns "" if the form does not come
    from the page, or if its invoice exists already.
    """
    if visitor.form_id is None or _exists(service, visitor.form_id):
        return ""
    press = repr((visitor.form_id, order.amount, sorted(order.details.items())))
    return hashlib.sha256(press.encode()).hexdigest()


def _refuse_busy_visitor(
    service: Service,
    address: str | None,
    mark: str,
    is_counted: bool = True,
) -> None:
    """Raises LinkRefused if this visitor has created too many invoices.

    This limit protects the wallet's gap limit. `address` is the rate-limit key; None if
    there is no limit. `mark` is the result of `_mark`. If `is_counted` is False, the
    limit is checked but this request is not counted.
    """
    if address is None:
        return
    bucket = link_invoices(service.settings.link_invoices_per_visitor)
    window = service.limiter.hit(bucket, address, is_counted, mark)
    if window.allowed:
        return
    message = gettext(
        "Too many payments were started from your network. Please try again in an hour."
    )
    retry_after_s = window.retry_after_s(service.now().timestamp())
    raise LinkRefused(429, message, retry_after_s=retry_after_s)


def _refuse_full_page(service: Service, page: Page) -> None:
    """Raises LinkRefused if all visitors together have too many unpaid invoices of the page.

    This limit protects the wallet's gap limit. The count is exact only in the
    transaction that creates the invoice.
    """
    now_ms = to_ms(service.now())
    values: Values = {
        "through": page.id,
        "now": now_ms,
        "since": now_ms - LOOKED_AT_MS,
    }
    count, first_look, first_expiry = service.db.get(page.unpaid_counts, **values)
    if count < service.settings.link_open_invoices:
        return
    leaves_ms = min(first_expiry or 0, (first_look or 0) + LOOKED_AT_MS)
    message = gettext("This link has too many open payments. Please try again later.")
    retry_after_s = max(1, math.ceil((leaves_ms - now_ms) / 1000))
    raise LinkRefused(429, message, retry_after_s=retry_after_s)
