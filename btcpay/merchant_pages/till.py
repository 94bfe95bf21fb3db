"""The till: an amount, one press, a QR code that turns green. Each tab has its own invoice."""

from collections.abc import Mapping
from decimal import Decimal

from flask import Response

from btcpay.checkout.invoice_page import page_of
from btcpay.checkout.standing import standing_of, whole_invoice
from btcpay.invoices import create
from btcpay.merchant_pages.amount_field import AmountRefused, typed_usd
from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.visit import Visit
from btcpay.values.errors import NotFound, PriceUnavailable
from btcpay.values.ids import is_id
from btcpay.values.times import to_ms
from btcpay.web.pages.languages import gettext
from schemas.requests import NEW_INVOICE, load
from storage.queries import invoices, merchants, till

# A quarter of an hour: the price holds for a guest who stands there, and nobody pays the day after.
LIFE_HOURS = Decimal("0.25")
CLOCK_MS = 3_600_000  # with less time left than this the page shows a clock, not a date
UNTYPED: Mapping[str, str] = {}


def add(area: Area) -> None:
    """Serves /merchant/till: the amount, and below it the invoices made."""
    area.get("/till", show_amount)
    area.post("/till", press)
    area.get("/till/<id>", show_invoice)


def show_amount(visit: Visit) -> Response:
    """The amount to type; `last` in the query is the invoice that this tab showed before."""
    return _form(visit)


def press(visit: Visit) -> Response:
    """Leads to the invoice of this press (303), or says what is wrong with it."""
    try:
        amount_usd = typed_usd(visit.form.get("amount_usd", ""))
        id = _ordered(visit, amount_usd)
    except AmountRefused as refused:
        return _form(visit, 400, visit.form, wrong=str(refused))
    except PriceUnavailable:
        told = gettext(
            "The exchange rate is not available right now, so nothing was created."
            " Please try again in a minute."
        )
        return _form(visit, 503, visit.form, problem=told)
    return visit.to(f"/till/{id}")


def show_invoice(visit: Visit, id: str) -> Response:
    """The QR code, then whether it is paid; the script asks the checkout's status."""
    row = whole_invoice(visit.service, id)
    if row["merchant_id"] != visit.merchant_id:
        raise NotFound("there is no such invoice")
    brand = visit.pages.brand(visit.merchant_id)
    page = page_of(standing_of(visit.service, row), brand)
    return visit.page("till_invoice.html", page=page, clock_ms=CLOCK_MS)


def _form(
    visit: Visit, status: int = 200, typed: Mapping[str, str] = UNTYPED, **told: str
) -> Response:
    service, id = visit.service, visit.query.get("last", "")
    shown = is_id("inv", id)
    last = service.db.row(till.LAST, id=id, merchant_id=visit.merchant_id) if shown else None
    return visit.page("till.html", status, last=last, typed=typed, told=told)


def _ordered(visit: Visit, amount_usd: Decimal) -> str:
    """The id of the invoice of this press: the one that it has made, or a new one.

    The price is asked for outside the transaction. Of two copies of one press the second waits for
    the merchant's row, and finds what the first has made. What a press has made is not shown again
    once money has come to it: a page that was gone back to is for the next guest. Raises
    PriceUnavailable.
    """
    service, id = visit.service, visit.id_of_press("inv")
    wanted = {"amount_usd": amount_usd, "expires_in_hours": LIFE_HOURS}
    order = create.order_of(
        visit.merchant_id, load(NEW_INVOICE, wanted | {"description": visit.form.get("note")})
    )
    price = create.live_price(service.db, service.prices, visit.merchant_id, visit.now)
    with service.db.write():
        service.db.only(merchants.LOCKED, id=visit.merchant_id)
        of_press = {"id": id, "merchant_id": visit.merchant_id}
        if service.db.row(till.UNTOUCHED, now=to_ms(visit.now), **of_press):
            return id
        if service.db.row(invoices.WHOLE, id=id) is None:
            order = order._replace(id=id)
        network = service.settings.network
        return create.new_invoice(service.db, network, visit.now, order, price)["id"]
