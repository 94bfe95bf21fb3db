"""The till: an amount, one press, a QR code that turns green; and the last sales."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from flask import Response

from btcpay.checkout.invoice_page import invoice_values
from btcpay.checkout.snapshot import Notices, is_taken_back, snapshot_of
from btcpay.invoices import create, orders, quotes
from btcpay.merchants import branding
from btcpay.parts.merchant_pages import queries
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.errors import InvalidRequest, NotFound, PriceUnavailable
from btcpay.values.money import asked_of, places_of, rounded
from btcpay.values.statuses import CheckoutState, InvoiceStatus
from btcpay.values.texts import TextRefused
from btcpay.values.times import to_ms
from btcpay.web.pages.forms import AmountRefused, error_message
from btcpay.web.pages.qr import qr_svg
from storage.queries import invoices, merchants
from storage.values import Values

# A quarter of an hour: the price holds for a guest who stands there, and nobody pays the day after.
LIFE_HOURS = Decimal("0.25")
MOST_TIPS = 4
MOST_TIP_PERCENT = 50
LISTED = 10
REMEMBERED = 50  # the sales in which frequent amounts are looked for
MOST_SUGGESTED = 4


def press(visit: Visit) -> Response:
    """Leads to the invoice of this press (303), or to its tip first, or shows the mistake."""
    service = visit.service
    form = visit.form
    try:
        amount, note = _read_sale(visit)
        quote = quotes.quote(service.prices, visit.now, _order(visit, amount, note))
    except AmountRefused as refused:
        return show_form(
            visit, 400, wrong=error_message(refused), readings=refused.readings
        )
    except InvalidRequest as refused:
        return show_form(visit, 400, wrong=error_message(refused))
    except TextRefused as refused:
        return show_form(visit, 400, problem=error_message(refused))
    except PriceUnavailable as error:
        return show_form(visit, 503, problem=error_message(error))
    if _percents(visit) and not visit.session.cashier_tips and "tip" not in form:
        return visit.redirect(
            "/till/tip", amount=amount, note=note, press=form.get("press")
        )
    return visit.redirect(f"/till/{_invoice_of_press(visit, quote)}")


def _read_sale(visit: Visit) -> tuple[Decimal, str]:
    """The amount and its note, or those of an earlier sale's button. Raises AmountRefused."""
    form = visit.form
    amount, _, note = form.get("suggested", "").partition(" ")
    typed_amount = amount or form.get("amount", "")
    typed_note = note or form.get("note", "")
    return visit.amount(typed_amount), typed_note


def _order(visit: Visit, amount: Decimal, note: str) -> orders.Order:
    """An order of the amount and its tip. Raises InvalidRequest."""
    tip = _gratuity(visit, amount, visit.form.get("tip", ""))
    wanted = {
        "amount": amount + tip,
        "description": note,
        "expires_in_hours": LIFE_HOURS,
    }
    return visit.order(wanted, tip=str(tip))


def _percents(visit: Visit) -> list[str]:
    return (visit.session.tip_percents or "").split()


def _gratuity(visit: Visit, amount: Decimal, percent: str) -> Decimal:
    """0 for a percentage that is not offered."""
    number = 0
    if percent in _percents(visit):
        number = int(percent)
    return rounded(amount * number / 100, visit.currency)


def ask_tip(visit: Visit) -> Response:
    """The customer's question, on the turned screen: its buttons make the invoice."""
    amount = visit.amount(visit.query.get("amount", ""))
    tips = [
        (int(percent), _gratuity(visit, amount, percent))
        for percent in _percents(visit)
    ]
    brand = visit.pages.brand(visit.merchant_id)
    query = visit.query
    return visit.page(
        "till_gratuity.html", amount=amount, tips=tips, brand=brand, asked_with=query
    )


def set_tips(visit: Visit) -> Response:
    """Stores who chooses the tip, and from what: whole percentages, as in `5 10` or `5 %, 10 %`."""
    words = visit.form.get("tips", "").replace(",", " ").replace("%", " ").split()
    percents = [int(word) for word in words if word.isdecimal() and len(word) <= 2]
    are_right = all(1 <= percent <= MOST_TIP_PERCENT for percent in percents)
    if len(percents) < len(words) or len(words) > MOST_TIPS or not are_right:
        return show_form(visit, 400, wrong_tips=True)
    chosen: Values = {
        "id": visit.merchant_id,
        "tip_percents": " ".join(map(str, percents)) or None,
        "cashier_tips": int("cashier" in visit.form),
    }
    visit.service.db.run(merchants.SET_TIPS, **chosen)
    return visit.redirect("/till", done="saved")


def show_manifest(visit: Visit) -> Response:
    """The manifest by which a browser installs the till (W3C Web Application Manifest)."""
    manifest = visit.page("manifest.json", background=branding.LIGHT_PAGE)
    manifest.mimetype = "application/manifest+json"
    del manifest.headers["Link"]  # it has no style sheet
    return manifest


def show_invoice(visit: Visit, id: str) -> Response:
    """A sale's QR code, then whether it is paid; the script asks the checkout's status."""
    snapshot = snapshot_of(visit.service, id, visit.merchant_id)
    if snapshot.row.tip is None:
        raise NotFound("this is no sale of the till")
    is_gone = (
        is_taken_back(visit.service.settings, snapshot.row) or snapshot.has_vanished
    )
    brand = visit.pages.brand(visit.merchant_id)
    page = invoice_values(snapshot, brand, Notices(has_vanished=is_gone))
    receipt_url = f"{visit.service.settings.base_url}/pay/{id}"
    return visit.page(
        "till_invoice.html",
        page=page,
        brand=brand,
        tip=Decimal(snapshot.row.tip),
        receipt_qr=qr_svg(receipt_url)
        if page["state"] in (CheckoutState.SEEN, CheckoutState.PAID)
        else None,
        sales=last_sales(visit, id),
    )


def show_form(visit: Visit, status: int = 200, **refused: Any) -> Response:
    """The form for an amount, and the last sales; the asking page shows the sale `shown` itself.

    `refused`: what is `wrong` with the amount, and its `readings`; `wrong_tips`; a `problem`.
    """
    return visit.page(
        "till.html",
        status,
        typed=visit.form if status != 200 else {},
        tips=[int(percent) for percent in _percents(visit)],
        by_cashier=visit.session.cashier_tips,
        places=places_of(visit.currency),
        sales=last_sales(visit, visit.query.get("shown", "")),
        now_ms=to_ms(visit.now),
        **refused,
    )


def _invoice_of_press(visit: Visit, quote: quotes.Quote) -> str:
    """The id of the invoice of this press: one that it made before, or a new one.

    An invoice is not shown again once money has come to it: a page reopened by going back is for
    the next guest.
    """
    service = visit.service
    with visit.create_once("inv", invoices.WHOLE) as (id, is_made):
        if is_made:
            own: Values = {
                "id": id,
                "merchant_id": visit.merchant_id,
                "now": to_ms(visit.now),
            }
            untouched = service.db.row(invoices.UNTOUCHED_OF_MERCHANT, **own)
            if untouched:
                return id
        network = service.settings.network
        new_id = None if is_made else id
        return create.new_invoice(service.db, network, visit.now, quote, new_id).id


def last_sales(visit: Visit, shown_id: str = "") -> dict[str, Any]:
    """`listed`: the last ones. `taken_back`: their ids; `alarms`: all that need a human.

    `is_waiting`: one is paid but not confirmed, so it may still be taken back. `shown_id`: the sale
    that the page itself shows to a customer, which needs no alarm. `notes`: what was sold.
    """
    db = visit.service.db
    asked = Values(merchant_id=visit.merchant_id, limit=REMEMBERED)
    rows = db.rows(queries.SALES, **asked)
    alarms = db.rows(queries.ALARMS, **asked)
    listed = rows[:LISTED]
    settings = visit.service.settings
    return {
        "listed": listed,
        "taken_back": {
            row.id
            for row in listed
            if row.attention == "reorganised" or is_taken_back(settings, row)
        },
        "alarms": [row for row in alarms if row.id != shown_id],
        "shown_id": shown_id,
        "is_waiting": any(
            row.status == InvoiceStatus.OPEN and row.covered_ms for row in listed
        ),
        "suggested": often_sold(rows, visit.currency),
        "notes": sorted({row.description for row in rows if row.description}),
    }


def often_sold(
    rows: Sequence[invoices.InvoiceWith], currency: str
) -> list[tuple[Decimal, str]]:
    """Amounts without tips, each with what it was for, sold at least twice; the smallest first."""
    sold = Counter(
        (rounded(asked.amount - Decimal(row.tip or 0), currency), row.description or "")
        for row in rows
        if (asked := asked_of(row)).currency == currency
    )
    often = [sale for sale, times in sold.most_common(MOST_SUGGESTED) if times > 1]
    return sorted(often)
