"""A bill's page, its button, and the page on which its customer ends a series."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from flask import Blueprint, Response

from btcpay.bills import queries
from btcpay.bills.acts import stop
from btcpay.bills.kinds import url_of
from btcpay.bills.money import coming, worth_of
from btcpay.checkout.link_order import pressed
from btcpay.checkout.link_page import GONE, LinkCookie, LinkRefused
from btcpay.invoices.create import Order
from btcpay.values.errors import InvalidRequest, NotFound, PriceUnavailable
from btcpay.values.ids import is_id
from btcpay.values.money import stored_amount
from btcpay.values.times import to_ms, zone_of
from btcpay.web.admission import door, visits
from btcpay.web.body import read_body
from btcpay.web.errors import STATUS
from btcpay.web.pages.forms import new_form, said
from btcpay.web.pages.languages import gettext
from btcpay.web.pages.render import Pages
from btcpay.web.paths import add_path
from btcpay.web.service import Service
from storage.database import Database
from storage.models import Bill, Invoice
from storage.queries import invoices, merchants

CONFLICT = 409


class Due(NamedTuple):
    """A bill's state: `missing` is to be paid, `coming` is on its way to the invoice `coming_to`.

    `rows`: its invoices; `brought`: those that count, each with its worth.
    """

    amount: Decimal
    paid: Decimal
    missing: Decimal
    coming: Decimal
    coming_to: str | None
    is_overdue: bool
    rows: list[Invoice]
    brought: list[tuple[Invoice, Decimal]]


def due_of(db: Database, bill: Bill, now: datetime) -> Due:
    rows = db.rows(queries.INVOICES, id=bill.id)
    amount, paid = stored_amount(bill.amount), stored_amount(bill.paid)
    more, to = coming(bill, rows)
    missing = max(amount - paid - more, Decimal(0))
    brought = [(row, worth) for row in rows if (worth := worth_of(bill, row))]
    return Due(amount, paid, missing, more, to, bill.due_at < to_ms(now), rows, brought)


@dataclass(frozen=True)
class OfBill:
    """A bill's page, where invoices for what is missing are made."""

    id: str
    through = invoices.THROUGH_BILL
    is_for_one = True

    def order(self, service: Service, text: str) -> Order:
        return self._order(service, service.db.only(queries.BY_ID, id=self.id))

    def lock(self, service: Service, order: Order) -> None:
        if self._order(service, service.db.only(queries.LOCKED, id=self.id)) != order:
            raise LinkRefused(CONFLICT, gettext("Something was paid just now. Please look again."))

    def _order(self, service: Service, bill: Bill) -> Order:
        if bill.status != "open":
            raise LinkRefused(GONE, gettext("There is nothing to pay any more."))
        missing = due_of(service.db, bill, service.now()).missing
        if not missing:
            raise LinkRefused(CONFLICT, gettext("A payment is on its way."))
        details = {name: getattr(bill, name) for name in ("description", "reference")}
        details |= {"customer_email": bill.customer_email, "bill_id": bill.id}
        details["return_url"] = url_of(service.settings.base_url, bill.id)
        life = timedelta(minutes=service.settings.link_invoice_expiry_min)
        return Order(bill.merchant_id, missing, life, details, bill.currency)


class Views:
    def __init__(self, service: Service) -> None:
        self.service = service
        self.pages = Pages(service, service.settings.frame_ancestors)
        self._cookie = LinkCookie(service.db, service.settings)

    def show(self, id: str) -> Response:
        """A bill's page; a GET writes nothing."""
        return self._page(self._bill(id))

    def pay(self, id: str) -> Response:
        """Leads to the invoice to pay (303), or shows the page again with the reason."""
        bill, fields = self._bill(id), parse_qs(read_body().decode("utf-8", "replace"))
        try:
            return pressed(self.service, self._cookie, OfBill(id), fields)
        except (InvalidRequest, PriceUnavailable) as error:
            return self._page(bill, LinkRefused(STATUS[error.code], said(error)))
        except LinkRefused as refused:
            return self._page(self._bill(id), refused)

    def show_stop(self, id: str) -> Response:
        return self._stop_page(self._bill(id))

    def stop(self, id: str) -> Response:
        """Ends the series. It takes no token, since a mail program may send it (RFC 8058)."""
        stop(self.service.db, self._bill(id), self.service.now())
        return self._stop_page(self._bill(id))

    def _bill(self, id: str) -> Bill:
        row = self.service.db.row(queries.BY_ID, id=id) if is_id("bil", id) else None
        if row is None:
            raise NotFound("there is no such bill")
        return row

    def _page(self, bill: Bill, refused: LinkRefused | None = None) -> Response:
        shown = {"due": due_of(self.service.db, bill, self.service.now()), "refused": refused}
        page = self._shown("bill.html", bill, refused.status if refused else 200, **shown)
        if refused and refused.retry_after_s:
            page.headers["Retry-After"] = str(refused.retry_after_s)
        return page

    def _stop_page(self, bill: Bill) -> Response:
        if bill.series_id is None:
            raise NotFound("the bill is of no series")
        return self._shown("bill_stop.html", bill, first=self._bill(bill.series_id))

    def _shown(self, template: str, bill: Bill, status: int = 200, **values: Any) -> Response:
        zone = zone_of(self.service.db.only(merchants.BY_ID, id=bill.merchant_id).timezone)
        values |= {"bill": bill, "zone": zone, "press": new_form()}
        return self.pages.page(template, status, self.pages.brand(bill.merchant_id), **values)


def blueprint(service: Service) -> Blueprint:
    """/bill, for whoever knows the bill's id."""
    views = Views(service)
    made = Blueprint("bills", __name__, template_folder="templates")
    paths: list[tuple[str, str, Callable[..., Response]]] = [
        ("GET", "/bill/<id>", views.show),
        ("POST", "/bill/<id>", views.pay),
        ("GET", "/bill/<id>/stop", views.show_stop),
        ("POST", "/bill/<id>/stop", views.stop),
    ]
    for method, path, view in paths:
        add_path(made, path, view, f"{method} {path}", method)
    made.before_request(door(service, lambda _: visits(service)))
    made.after_request(views.pages.guard)
    made.register_error_handler(Exception, views.pages.failed_for_payer)
    return made
