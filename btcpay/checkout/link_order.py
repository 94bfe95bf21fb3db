"""Pressing the button of a page that makes invoices: the limits, then the invoice or the reason."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from flask import Response, request

from btcpay.checkout.link_page import LinkCookie, LinkRefused
from btcpay.invoices import create, orders, quotes
from btcpay.values.money import asked_of
from btcpay.values.times import to_ms
from btcpay.web.admission import is_from_another_site, visitor_key
from btcpay.web.pages.languages import gettext, language_query
from btcpay.web.rate_limits import link_invoices
from btcpay.web.service import Service
from storage.models import Invoice
from storage.queries import invoices
from storage.statement import Typed
from storage.values import Values

# A link counts unpaid invoices that were made, or whose page was open, in this time. After it,
# people who pressed and left no longer keep others from paying.
LOOKED_AT_MS = 10 * 60_000


class Page(Protocol):
    """A page that makes invoices: a payment link's or a part's.

    `order` and `lock` raise LinkRefused once the page is closed. `is_for_one`: the page has one
    payer, whom its button leads back to the last invoice made there.
    """

    is_for_one: bool

    @property
    def id(self) -> str: ...
    @property
    def unpaid_counts(self) -> Typed[tuple[int, int | None, int | None]]: ...
    def order(self, service: Service, text: str) -> orders.Order:
        """An invoice of the page's amount, or of the typed one. Raises AmountRefused."""

    def lock(self, service: Service, order: orders.Order) -> None:
        """Locks the page's row in the transaction that counts the page's invoices."""


@dataclass(frozen=True)
class Visitor:
    """The person who presses the button.

    `address`: the key of the window to count in; None for no window. `form_id`: the id of the
    invoice that this form makes; None without a form of ours. `last_id`: the last invoice that this
    browser made at the page. `next_id`: the one that may follow once that is paid.
    """

    address: str | None
    amount_text: str
    form_id: str | None
    last_id: str | None
    next_id: str | None


def redirect_to_invoice(
    service: Service, cookie: LinkCookie, page: Page, fields: Mapping[str, str]
) -> Response:
    """Redirects the browser that sent these fields to its invoice. Raises what `pay` raises."""
    form = fields.get("press", "")
    text = fields.get("amount", "")
    form_id = cookie.invoice_id_of_form(page.id, form)
    last_id = cookie.last_invoice_id(page.id)
    next_id = last_id and cookie.next_invoice_id(last_id)
    # Visitors of another site would use up the link's limits without knowing it.
    if is_from_another_site(request.headers, service.settings.base_url):
        message = gettext(
            "Another site asked for this payment. If you want to pay, please press here."
        )
        raise LinkRefused(403, message)
    visitor = Visitor(visitor_key(service), text, form_id, last_id, next_id)
    invoice_id = pay(service, page, visitor)
    # Relative, so that it stays in the origin that the form's policy allows.
    url = f"../pay/{invoice_id}{language_query()}"
    response = Response(status=303, headers={"Location": url})
    cookie.remember(response, page.id, invoice_id)
    return response


def pay(service: Service, page: Page, visitor: Visitor) -> str:
    """The id of the invoice to pay: a new one, or the one that the same press has made already.

    The price is fetched outside the transaction. Under the page's lock the invoice is looked for
    again, since the same form may have been sent twice. Raises LinkRefused, InvalidRequest,
    PriceUnavailable.
    """
    order = page.order(service, visitor.amount_text)
    # Looked up first: a copy of this press that makes the invoice later has the same mark.
    mark = ""
    if not _exists(service, visitor.form_id):
        mark = _mark(order, visitor)
    unpaid_id = _unpaid_id(service, page, order, visitor)
    if unpaid_id:
        return unpaid_id
    promised_id = visitor.form_id
    address = visitor.address
    if _has_paid(service, page, visitor):
        # Not counted, so that a tablet on a counter serves one customer after another. The id
        # follows from the paid invoice, so that there is only one.
        promised_id = visitor.next_id
        address = None
    _refuse_full(service, address, mark, is_counted=False)
    _refuse_crowded(service, page)
    quote = quotes.quote(service.prices, service.now(), order)
    _refuse_full(service, address, mark)
    with service.db.write():
        page.lock(service, order)
        unpaid_id = _unpaid_id(service, page, order, visitor)
        if unpaid_id:
            return unpaid_id
        _refuse_crowded(service, page)
        new_id = promised_id
        # The invoice that exists is paid, or its form came with another amount.
        exists = _exists(service, promised_id)
        if exists:
            new_id = None
        if not exists or promised_id != visitor.next_id:
            network = service.settings.network
            invoice = create.new_invoice(
                service.db, network, service.now(), quote, new_id
            )
            return invoice.id
    # Another press used the invoice that the payment allowed, so this one is counted.
    return pay(service, page, visitor)


def _has_paid(service: Service, page: Page, visitor: Visitor) -> bool:
    """True if this browser's last invoice got money, and no invoice followed it yet."""
    if visitor.last_id is None or _exists(service, visitor.next_id):
        return False
    last: Values = {"id": visitor.last_id, "through": page.id}
    return service.db.row(invoices.PAID_TO, **last) is not None


def _exists(service: Service, invoice_id: str | None) -> bool:
    if invoice_id is None:
        return False
    return service.db.row(invoices.WHOLE, id=invoice_id) is not None


def _unpaid_id(
    service: Service, page: Page, order: orders.Order, visitor: Visitor
) -> str | None:
    """The id of the unpaid invoice that this press has made for that order; None for none."""
    ids = [visitor.form_id, visitor.next_id]
    if page.is_for_one:
        ids.append(visitor.last_id)
    for invoice_id in filter(None, ids):
        row = still_to_pay(service, page, invoice_id)
        if row is None:
            continue
        is_same_amount = asked_of(row).amount == order.amount
        if is_same_amount and _has_answers(row, order.details):
            return invoice_id
    return None


def _has_answers(row: Invoice, details: Mapping[str, object]) -> bool:
    names = (column.name for column in Invoice.PERSONAL)
    return all(getattr(row, name) == details.get(name) for name in names)


def still_to_pay(service: Service, page: Page, invoice_id: str) -> Invoice | None:
    """The id, amount and payer of an invoice of this page, if nothing has come to it yet."""
    values: Values = {"id": invoice_id, "through": page.id, "now": to_ms(service.now())}
    return service.db.row(invoices.UNTOUCHED, **values)


def _mark(order: orders.Order, visitor: Visitor) -> str:
    """The same text for each copy of one press, which the limits then count once.

    It is empty without a form of ours. A form with other fields is another press.
    """
    if visitor.form_id is None:
        return ""
    press = repr((visitor.form_id, order.amount, sorted(order.details.items())))
    return hashlib.sha256(press.encode()).hexdigest()


def _refuse_full(
    service: Service, address: str | None, mark: str, is_counted: bool = True
) -> None:
    """Keeps one visitor from using up the wallet's gap limit. Raises LinkRefused."""
    if address is None:
        return
    bucket = link_invoices(service.settings.link_invoices_per_visitor)
    window = service.limiter.hit(bucket, address, is_counted, mark)
    if window.allowed:
        return
    message = gettext(
        "Too many invoices were made from your network. Please try again in an hour."
    )
    retry_after_s = window.retry_after_s(service.now().timestamp())
    raise LinkRefused(429, message, retry_after_s=retry_after_s)


def _refuse_crowded(service: Service, page: Page) -> None:
    """Keeps many visitors from using it up. Raises LinkRefused.

    The count is exact if this runs in the invoice's transaction.
    """
    now_ms = to_ms(service.now())
    values: Values = {
        "through": page.id,
        "now": now_ms,
        "since": now_ms - LOOKED_AT_MS,
    }
    count, first_look, first_expiry = service.db.only(page.unpaid_counts, **values)
    if count < service.settings.link_open_invoices:
        return
    leaves_ms = min(first_expiry or 0, (first_look or 0) + LOOKED_AT_MS)
    message = gettext("This link has too many unpaid invoices. Please try again later.")
    retry_after_s = max(1, math.ceil((leaves_ms - now_ms) / 1000))
    raise LinkRefused(429, message, retry_after_s=retry_after_s)
