"""The merchant's pages about bills.

The form for a new bill is in `new_bill.py`.
"""

from collections.abc import Sequence
from decimal import Decimal

from flask import Response
from peewee import Query

from btcpay import hooks
from btcpay.notify.mail.mailto import mail_link
from btcpay.parts.bills import actions, new_bill, on_other_pages, queries
from btcpay.parts.bills.kinds import RESOURCE
from btcpay.parts.bills.mail import text_of
from btcpay.parts.bills.models import Bill, BillStatus
from btcpay.parts.bills.money import due_of
from btcpay.settings.settings import Settings
from btcpay.values.errors import ChangeRefused
from btcpay.values.money import of_minor, stored_amount
from btcpay.values.times import to_ms
from btcpay.web.pages.languages import current_language
from btcpay.web.pages.listing import Listing
from btcpay.web.pages.qr import qr_svg
from btcpay.web.pages.render import View
from btcpay.web.pages.visit import Visit
from storage.database import Database
from storage.values import Values

# The maximum number of a series' bills on a page: ten years if it is monthly.
OF_SERIES = 120
LISTS: dict[str, Query] = {
    BillStatus.PAID: queries.LIST_BY_STATUS,
    BillStatus.ENDED: queries.LIST_BY_STATUS,
    "due": queries.DUE,
    "overdue": queries.OVERDUE,
}


def views(settings: Settings) -> list[tuple[str, str, View]]:
    """Returns the method, path and view function of each of the merchant's pages about bills."""
    return [
        ("GET", "/merchant/bills", show_list),
        ("POST", "/merchant/bills", new_bill.make),
        ("GET", "/merchant/bills/new", new_bill.show_form),
        ("GET", "/merchant/bills/<id>", show),
        ("POST", "/merchant/bills/<id>/end", end),
    ]


def state_of(bill: Bill, now_ms: int) -> str:
    """Returns the status to show: "overdue" for an open bill that is due before `now_ms`."""
    if bill.status == BillStatus.OPEN and bill.due_ms < now_ms:
        return "overdue"
    return bill.status


def show_list(visit: Visit) -> Response:
    """Returns a page of the merchant's bills, newest first.

    `?status=` limits the list to the bills of this status; "due" and "overdue" divide
    the open bills.
    """
    status = visit.choice("status", LISTS)
    now_ms = to_ms(visit.now)
    values: Values = {
        "merchant_id": visit.merchant_id,
        "status": status,
        "now": now_ms,
    }
    listing = Listing(
        prefix="bil",
        older=LISTS.get(status, queries.LIST),
        place=queries.POSITION,
        values=values,
    )
    return visit.page(
        "bills.html",
        listing=listing.page(visit.service.db, visit.query),
        of_status=status,
        state_of=state_of,
        now_ms=now_ms,
    )


def show(visit: Visit, id: str) -> Response:
    """Returns the merchant's page of a bill. Raises NotFound if the merchant has no such bill."""
    bill = visit.get_or_404(queries.BY_ID, "bil", id)
    db = visit.service.db
    url = RESOURCE.url_of(visit.service.settings.base_url, id)
    first = None
    renews_ms = None
    series: list[Bill] = []
    if bill.series_id:
        series = _bills_of_series(visit, bill.series_id)
        first = _first_bill(db, series, bill.series_id)
        renews_ms = first.renews_ms
    return visit.page(
        "bill.html",
        bill=bill,
        due=due_of(db, bill, visit.now),
        first=first,
        series=series,
        raised=_paid_sum(series, bill.currency),
        state_of=state_of,
        now_ms=to_ms(visit.now),
        is_mailed=bool(bill.customer_email and visit.service.has_mail()),
        url=url,
        qr=qr_svg(url),
        mailto=_mailto(visit, bill, renews_ms, url),
    )


def _mailto(visit: Visit, bill: Bill, renews_ms: int | None, url: str) -> str:
    """Returns a `mailto:` link, with which the merchant sends the bill from their own mailbox.

    `renews_ms` is the time when the series creates its next bill, in unix milliseconds;
    None if it creates none. `url` is the bill's page.
    """
    mail = text_of(
        "new",
        bill,
        seller=visit.session.seller,
        renews_ms=renews_ms,
        page_url=url,
        language=current_language(),
        zone=visit.zone,
    )
    body = mail.text.replace("\n", "\r\n")  # RFC 6068 asks for CRLF
    return mail_link(bill.customer_email, mail.subject, body)


def _paid_sum(bills: Sequence[Bill], currency: str) -> Decimal:
    paid_amounts = [stored_amount(bill.paid) for bill in bills]
    return sum(paid_amounts, of_minor(0, currency))


def _bills_of_series(visit: Visit, series_id: str) -> list[Bill]:
    """Returns the newest OF_SERIES bills of a series, newest first."""
    return visit.service.db.rows(
        queries.OF_SERIES,
        merchant_id=visit.merchant_id,
        series_id=series_id,
        limit=OF_SERIES,
    )


def _first_bill(db: Database, series: Sequence[Bill], series_id: str) -> Bill:
    """Returns the first bill of the series, which `series` lacks if the series is long."""
    oldest = series[-1]
    if oldest.id == series_id:
        return oldest
    return db.get(queries.BY_ID, id=series_id)


def end(visit: Visit, id: str) -> Response:
    """Ends the bill and its series, and redirects (303) to its page."""
    visit.get_or_404(queries.BY_ID, "bil", id)
    outcome = "ended"
    try:
        actions.end(visit.service.db, visit.service.settings, id, visit.now)
    except ChangeRefused as error:
        outcome = error.code
    return visit.redirect(f"/bills/{id}", done=outcome)


HOOK = hooks.MerchantViews(
    views=views,
    menu_item=on_other_pages.menu_item,
    today_counts={
        "bills_overdue": queries.OVERDUE_OF_OUTER,
        "bills_due": queries.DUE_OF_OUTER,
    },
    today_lines=on_other_pages.today_lines,
    month_lines=on_other_pages.month_lines,
)
