"""The customer's pages of a bill: one to pay the bill, and one to end its series."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from flask import Blueprint, Response

from btcpay import hooks
from btcpay.checkout.link_cookie import LinkCookie
from btcpay.checkout.link_order import redirect_to_invoice
from btcpay.checkout.link_page import GONE, LinkRefused
from btcpay.invoices.orders import Order
from btcpay.parts.bills import queries
from btcpay.parts.bills.actions import zone_at
from btcpay.parts.bills.bill_receipt import receipt_of
from btcpay.parts.bills.kinds import RESOURCE
from btcpay.parts.bills.models import Bill, BillStatus
from btcpay.parts.bills.money import due_of
from btcpay.values.errors import InvalidRequest, NotFound, PriceUnavailable
from btcpay.values.times import to_ms
from btcpay.web.errors import STATUS
from btcpay.web.pages.forms import error_message, new_form_id, read_form
from btcpay.web.pages.languages import gettext, language_query
from btcpay.web.pages.render import Pages, View
from btcpay.web.service import Service

CONFLICT = 409


@dataclass(frozen=True)
class BillToPay:
    """A bill, as the checkout sees it when it creates an invoice for the unpaid amount.

    Implements the protocol `Page` of btcpay/checkout/payment_page.py.
    """

    id: str
    unpaid_counts = queries.UNPAID_COUNTS
    is_for_one = True

    def order(self, service: Service, _text: str) -> Order:
        """Returns the order for the unpaid amount.

        The page of a bill has no field for an amount, so the text is ignored. Raises
        LinkRefused if the bill is not open, or if unconfirmed payments are enough.
        """
        bill = service.db.get(queries.BY_ID, id=self.id)
        return _order_of(service, bill)

    def lock(self, service: Service, order: Order) -> None:
        """Locks the bill's row until the caller's transaction ends.

        Raises LinkRefused if the unpaid amount is no longer that of `order`.
        """
        bill = service.db.get(queries.LOCKED, id=self.id)
        if _order_of(service, bill) != order:
            raise LinkRefused(
                CONFLICT, gettext("Something was paid just now. Please look again.")
            )


def _order_of(service: Service, bill: Bill) -> Order:
    """Returns the order for the bill's unpaid amount. Raises LinkRefused if there is none."""
    if bill.status != BillStatus.OPEN:
        raise LinkRefused(GONE, gettext("There is nothing to pay any more."))
    missing = due_of(service.db, bill, service.now()).missing
    if not missing:
        raise LinkRefused(CONFLICT, gettext("A payment is on its way."))
    details = {
        "description": bill.description,
        "reference": bill.reference,
        "customer_email": bill.customer_email,
        "bill_id": bill.id,
        "return_url": RESOURCE.url_of(service.settings.base_url, bill.id),
    }
    return Order(
        merchant_id=bill.merchant_id,
        amount=missing,
        life=timedelta(minutes=service.settings.link_invoice_expiry_min),
        details=details,
        currency=bill.currency,
    )


class Views(Pages):
    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._cookie = LinkCookie(service.db, service.settings)

    def show(self, id: str, refusal: LinkRefused | None = None) -> Response:
        """Returns the page of a bill. Stores nothing.

        `refusal` is the reason why the customer's attempt to pay was refused; None if
        there was no such attempt.
        """
        db = self.service.db
        bill = RESOURCE.get_or_404(db, id)
        status = 200
        if refusal:
            status = refusal.status
        page = self._bill_page(
            "bill.html",
            bill,
            status,
            due=due_of(db, bill, self.service.now()),
            refusal=refusal,
            first=RESOURCE.get_or_404(db, bill.series_id or id),
            receipt=receipt_of(db, bill),
        )
        if refusal and refusal.retry_after_s:
            page.headers["Retry-After"] = str(refusal.retry_after_s)
        return page

    def pay(self, id: str) -> Response:
        """Creates the invoice to pay, or finds the existing one, and redirects (303) to it.

        If there is no invoice to pay, returns the bill's page with the reason.
        """
        RESOURCE.get_or_404(self.service.db, id)
        fields = read_form()
        try:
            return redirect_to_invoice(
                self.service, self._cookie, BillToPay(id), fields
            )
        except (InvalidRequest, PriceUnavailable) as error:
            return self.show(id, LinkRefused(STATUS[error.code], error_message(error)))
        except LinkRefused as refusal:
            return self.show(id, refusal)

    def show_stop(self, id: str) -> Response:
        bill = RESOURCE.get_or_404(self.service.db, id)
        if bill.series_id is None:
            raise NotFound("the bill is of no series")
        first = RESOURCE.get_or_404(self.service.db, bill.series_id)
        return self._bill_page("bill_stop.html", bill, first=first)

    def stop(self, id: str) -> Response:
        """Ends the series at the customer's request: it creates no more bills and mails.

        The amount of this bill is still owed. The form has no CSRF token, since a mail
        program may send it. Redirects (303). But a mail program's one-click request gets
        a page, since RFC 8058 forbids a redirect in reply to it.
        """
        bill = RESOURCE.get_or_404(self.service.db, id)
        self.service.db.run(
            queries.STOP, id=bill.series_id or "", at=to_ms(self.service.now())
        )
        if "List-Unsubscribe" in read_form():
            return self.show_stop(id)
        return Response(status=303, headers={"Location": f"stop{language_query()}"})

    def _bill_page(
        self,
        template: str,
        bill: Bill,
        status: int = 200,
        **values: Any,
    ) -> Response:
        values |= {"bill": bill, "zone": zone_at(self.service.db, bill.merchant_id)}
        return self.page(
            template,
            status,
            self.brand(bill.merchant_id),
            press=new_form_id(),  # by which a second press of the same form is known
            **values,
        )


def blueprint(service: Service) -> Blueprint:
    """Returns the blueprint of the pages below /bill.

    They need no login: everybody who knows a bill's id can open its pages.
    """
    views = Views(service)
    paths: list[tuple[str, str, View]] = [
        ("GET", "/bill/<id>", views.show),
        ("POST", "/bill/<id>", views.pay),
        ("GET", "/bill/<id>/stop", views.show_stop),
        ("POST", "/bill/<id>/stop", views.stop),
    ]
    return views.blueprint("bills", __name__, paths)


HOOK = hooks.Pages(blueprint=blueprint)
