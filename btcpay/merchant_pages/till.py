"""The till: an amount, one press, a QR code that turns green; and the last sales.

Each tab has its own invoice.
"""

import json
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from flask import Response

from btcpay.checkout.invoice_page import page_of
from btcpay.checkout.snapshot import Notices, is_taken_back, snapshot_of
from btcpay.invoices import create
from btcpay.merchant_pages import queries
from btcpay.merchant_pages.visit import Visit, address
from btcpay.merchants import branding
from btcpay.values.errors import InvalidRequest, NotFound, PriceUnavailable
from btcpay.values.money import asked_of, places_of, rounded
from btcpay.values.times import to_ms
from btcpay.web.pages.forms import said
from btcpay.web.pages.languages import gettext
from btcpay.web.pages.qr import qr_svg
from storage.queries import invoices, merchants
from storage.values import Values

# A quarter of an hour: the price holds for a guest who stands there, and nobody pays the day after.
LIFE_HOURS = Decimal("0.25")
MOST_TIPS = 4
MOST_TIP_PERCENT = 50
CLOCK_MS = 3_600_000  # with less time left than this the page shows a clock, not a date
LISTED = 10
REMEMBERED = 50  # the sales in which frequent amounts are looked for
MOST_SUGGESTED = 4


def press(visit: Visit) -> Response:
    """Leads to the invoice of this press (303), or shows the mistake."""
    try:
        id = _made(visit, _asked_for(visit))
    except InvalidRequest as refused:
        return show_form(visit, 400, wrong=said(refused))
    except PriceUnavailable as error:
        return show_form(visit, 503, problem=said(error))
    return visit.to(f"/till/{id}")


def _asked_for(visit: Visit) -> create.Order:
    """The amount with its tip. Raises InvalidRequest."""
    form = visit.form
    amount = visit.amount(form.get("suggested") or form.get("amount", ""))
    offered = visit.session.tip_percents or ""
    percent = int(form["tip"]) if form.get("tip") in offered.split() else 0
    tip = rounded(amount * percent / 100, visit.currency)
    wanted = {"amount": amount + tip, "description": form.get("note")}
    return visit.order(wanted | {"expires_in_hours": LIFE_HOURS}, tip=str(tip))


def set_tips(visit: Visit) -> Response:
    """Stores the tips that the form offers: whole percentages, from `5 10` or `5 %, 10 %`."""
    words = visit.form.get("tips", "").replace(",", " ").replace("%", " ").split()
    percents = [int(word) for word in words if word.isdecimal() and len(word) <= 2]
    are_right = all(1 <= percent <= MOST_TIP_PERCENT for percent in percents)
    if len(percents) < len(words) or len(words) > MOST_TIPS or not are_right:
        return show_form(visit, 400, wrong_tips=True)
    text = " ".join(map(str, percents)) or None
    visit.service.db.run(merchants.SET_TIPS, id=visit.merchant_id, tip_percents=text)
    return visit.to("/till", done="saved")


def show_manifest(visit: Visit) -> Response:
    """The manifest by which a browser installs the till (W3C Web Application Manifest)."""
    icons = [
        {"src": visit.pages.icon(), "type": "image/svg+xml", "sizes": "any"},
        {"src": visit.pages.icon("icon.png"), "type": "image/png", "sizes": "512x512"},
    ]
    manifest = {
        "name": f"{gettext('Till')} · {visit.session.seller}",
        "short_name": gettext("Till"),
        "id": address("/till"),
        "start_url": address("/till"),
        "scope": address("/till"),
        "display": "standalone",
        "background_color": branding.LIGHT_PAGE,
        "icons": icons,
    }
    return Response(json.dumps(manifest), mimetype="application/manifest+json")


def show_invoice(visit: Visit, id: str) -> Response:
    """The QR code, then whether it is paid; the script asks the checkout's status."""
    snapshot = snapshot_of(visit.service, id, visit.merchant_id)
    if visit.session.till_only and snapshot.row.tip is None:
        raise NotFound("this is no sale of the till")
    is_gone = is_taken_back(visit.service.settings, snapshot.row) or snapshot.has_vanished
    brand = visit.pages.brand(visit.merchant_id)
    page = page_of(snapshot, brand, Notices(has_vanished=is_gone))
    receipt_url = f"{visit.service.settings.base_url}/pay/{id}"
    return visit.page(
        "till_invoice.html",
        page=page,
        brand=brand,
        clock_ms=CLOCK_MS,
        tip=Decimal(snapshot.row.tip or 0),
        receipt_qr=qr_svg(receipt_url) if page["state"] in ("seen", "paid") else None,
        sales=last_sales(visit, id),
    )


def show_form(
    visit: Visit, status: int = 200, wrong: str = "", problem: str = "", wrong_tips: bool = False
) -> Response:
    """The form for an amount, and the last sales; the asking page shows the sale `shown` itself."""
    return visit.page(
        "till.html",
        status,
        typed=visit.form if status != 200 else {},
        wrong=wrong,
        problem=problem,
        wrong_tips=wrong_tips,
        tips=[int(percent) for percent in (visit.session.tip_percents or "").split()],
        places=places_of(visit.currency),
        sales=last_sales(visit, visit.query.get("shown", "")),
        now_ms=to_ms(visit.now),
    )


def _made(visit: Visit, order: create.Order) -> str:
    """The id of the invoice of this press: one that it made before, or a new one.

    An invoice is not shown again once money has come to it: a page reopened by going back is for
    the next guest. Raises PriceUnavailable, InvalidRequest.
    """
    service = visit.service
    quote = create.quote(service.db, service.prices, visit.now, order)
    with visit.once("inv", invoices.WHOLE) as (id, is_made):
        own: Values = {"id": id, "merchant_id": visit.merchant_id, "now": to_ms(visit.now)}
        if service.db.row(invoices.UNTOUCHED_OF_MERCHANT, **own):
            return id
        network, new_id = service.settings.network, None if is_made else id
        return create.new_invoice(service.db, network, visit.now, quote, new_id).id


def last_sales(visit: Visit, shown_id: str = "") -> dict[str, Any]:
    """`listed`: the last ones. `taken_back`: their ids; `alarms`: all that need a human.

    `is_waiting`: one is paid but not confirmed, so it may still be taken back. `shown_id`: the sale
    that the page itself shows to a customer, which needs no alarm.
    """
    db, asked = visit.service.db, Values(merchant_id=visit.merchant_id, limit=REMEMBERED)
    rows, alarms = db.rows(queries.SALES, **asked), db.rows(queries.ALARMS, **asked)
    listed = rows[:LISTED]
    settings = visit.service.settings
    taken_back = [
        row for row in listed if row.attention == "reorganised" or is_taken_back(settings, row)
    ]
    return {
        "listed": listed,
        "taken_back": {row.id for row in taken_back},
        "alarms": [row for row in alarms if row.id != shown_id],
        "shown_id": shown_id,
        "is_waiting": any(row.status == "open" and row.covered_at for row in listed),
        "suggested": often_sold(rows, visit.currency),
    }


def often_sold(rows: Sequence[invoices.InvoiceWith], currency: str) -> list[Decimal]:
    """Amounts without tips that were sold at least twice, the smallest first."""
    sold = Counter(
        rounded(asked.amount - Decimal(row.tip or 0), currency)
        for row in rows
        if (asked := asked_of(row)).currency == currency
    )
    often = [amount for amount, times in sold.most_common(MOST_SUGGESTED) if times > 1]
    return sorted(often)
