"""The till: an amount, one press, a QR code that turns green. Each tab has its own invoice."""

from decimal import Decimal

from flask import Response

from btcpay.checkout.amounts import AmountRefused, read_amount, refuse_dust
from btcpay.checkout.invoice_page import page_of
from btcpay.checkout.link_page import no_price, too_much
from btcpay.checkout.snapshot import Notices, has_vanished, snapshot_of
from btcpay.invoices import create
from btcpay.invoices.links import most
from btcpay.merchant_pages.visit import Visit
from btcpay.values.errors import InvalidRequest, PriceUnavailable, TooMuch
from btcpay.values.ids import is_id
from btcpay.values.times import to_ms
from schemas.requests import NEW_PRICED_INVOICE, load
from storage.queries import invoices, merchants
from storage.queries.lists import merchant_lists

# A quarter of an hour: the price holds for a guest who stands there, and nobody pays the day after.
LIFE_HOURS = Decimal("0.25")
CLOCK_MS = 3_600_000  # with less time left than this the page shows a clock, not a date


def press(visit: Visit) -> Response:
    """Leads to the invoice of this press (303), or says what is wrong with it."""
    try:
        currency = visit.currency
        amount = read_amount(visit.form.get("amount", ""), currency, Decimal(0), most(currency))
        id = _made(visit, amount)
    except TooMuch:
        return show_form(visit, 400, wrong=too_much())
    except (AmountRefused, InvalidRequest) as refused:
        return show_form(visit, 400, wrong=str(refused))
    except PriceUnavailable:
        return show_form(visit, 503, problem=no_price())
    return visit.to(f"/till/{id}")


def show_invoice(visit: Visit, id: str) -> Response:
    """The QR code, then whether it is paid; the script asks the checkout's status."""
    snapshot = snapshot_of(visit.service, id, visit.merchant_id)
    is_gone = snapshot.is_taken_back or has_vanished(visit.service, snapshot)
    notices = Notices(has_vanished=is_gone)
    brand = visit.pages.brand(visit.merchant_id)
    page = page_of(snapshot, brand, notices)
    return visit.page("till_invoice.html", page=page, brand=brand, clock_ms=CLOCK_MS)


def show_form(visit: Visit, status: int = 200, wrong: str = "", problem: str = "") -> Response:
    """The amount to type; `last` in the query is the invoice that this tab showed before."""
    service, id = visit.service, visit.query.get("last", "")
    last = None
    if is_id("inv", id):
        last = service.db.row(merchant_lists.INVOICE, id=id, merchant_id=visit.merchant_id)
    if last and last["covered_at"] and last["status"] != "paid":
        last["is_taken_back"] = snapshot_of(service, id, is_look=False).is_taken_back
    typed = visit.form if wrong or problem else {}
    return visit.page("till.html", status, last=last, typed=typed, wrong=wrong, problem=problem)


def _made(visit: Visit, amount: Decimal) -> str:
    """The id of the invoice of this press: the one that it has made, or a new one.

    The price is asked for outside the transaction. Of two copies of one press the second waits for
    the merchant's row, and finds what the first has made. What a press has made is not shown again
    once money has come to it: a page that was gone back to is for the next guest. Raises
    PriceUnavailable, AmountRefused.
    """
    service, id = visit.service, visit.id_of_press("inv")
    currency, note = visit.currency, visit.form.get("note")
    wanted = {"amount": amount, "expires_in_hours": LIFE_HOURS, "description": note}
    order = create.order_of(visit.merchant_id, load(NEW_PRICED_INVOICE, wanted), currency)
    price = create.live_price(service.db, service.prices, visit.merchant_id, visit.now, currency)
    high = most(currency)
    refuse_dust(service, visit.merchant_id, amount, high, currency, price.in_currency)
    with service.db.write():
        service.db.only(merchants.LOCKED, id=visit.merchant_id)
        of_press = {"id": id, "merchant_id": visit.merchant_id}
        if service.db.row(invoices.UNTOUCHED_OF_MERCHANT, now=to_ms(visit.now), **of_press):
            return id
        if service.db.row(invoices.WHOLE, id=id) is None:
            order = order._replace(id=id)
        network = service.settings.network
        return create.new_invoice(service.db, network, visit.now, order, price)["id"]
