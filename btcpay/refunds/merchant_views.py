"""The merchant's side: a refund is made on an invoice's page, and sent from the list of refunds."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Protocol

from flask import Response

from btcpay.refunds import acts, kinds, queries
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError, PriceUnavailable, Refused
from btcpay.values.ids import ID_CHARACTERS
from btcpay.web.pages.forms import AmountRefused
from btcpay.web.pages.qr import payment_uri, qr_svg
from btcpay.web.service import Service
from storage.models import Invoice, Refund
from storage.queries import invoices

MOST = 50  # refunds on the page, of those to be sent and of the others


class Visit(Protocol):
    """The members of a merchant's visit that these pages use."""

    service: Service
    merchant_id: int
    now: datetime
    form: dict[str, str]
    currency: str
    amount: Callable[[str], Decimal]
    own: Callable[..., Any]
    secret_of_press: Callable[[], str]
    page: Callable[..., Response]
    to: Callable[..., Response]


View = Callable[..., Response]


def views(_settings: Settings) -> list[tuple[str, str, View]]:
    """Method, path and view of each page in the merchant's area."""
    return [
        ("GET", "/merchant/refunds", show),
        ("POST", "/merchant/invoices/<id>/refund", make),
        ("POST", "/merchant/refunds/<id>/clear", partial(_act, act=acts.clear, done="cleared")),
        ("POST", "/merchant/refunds/<id>/cancel", partial(_act, act=acts.cancel, done="canceled")),
    ]


def show(visit: Visit) -> Response:
    """Refunds to be sent, the oldest first; then the others, the newest first."""
    db, root = visit.service.db, visit.service.settings.base_url
    own: Any = {"merchant_id": visit.merchant_id, "limit": MOST}
    ready = db.rows(queries.READY_OF_MERCHANT, **own)
    uris = {row.id: payment_uri(row.address or "", row.amount_sats) for row in ready}
    others = db.rows(queries.OTHERS_OF_MERCHANT, **own)
    asked_for = [row for row in others if row.status == "requested"]
    urls = {row.id: kinds.url_of(root, row.id) for row in asked_for}
    return visit.page(
        "refunds.html",
        ready=ready,
        uris=uris,
        urls=urls,
        codes={id: qr_svg(text) for id, text in (uris | urls).items()},
        asked_for=asked_for,
        ended=[row for row in others if row.status != "requested"],
    )


def make(visit: Visit, id: str) -> Response:
    """One refund for a press; its page says what is wrong, if anything is."""
    invoice: Invoice = visit.own(invoices.WHOLE, "inv", id)
    service, form = visit.service, visit.form
    made_id = f"rfd_{visit.secret_of_press()[:ID_CHARACTERS]}"
    try:
        sats = None
        if text := form.get("amount", "").strip():
            amount = visit.amount(text)
            sats = acts.sats_of(service.prices, visit.now, amount, visit.currency)
        more = (form.get("reason", "").strip() or None, form.get("address"), made_id)
        order = acts.Order(visit.merchant_id, invoice, sats, *more)
        acts.make(service.db, service.settings, order, visit.now)
    except (AmountRefused, PriceUnavailable) as error:
        return visit.to(f"/invoices/{id}", done=f"refund_{error.code}")
    except CommandError as error:
        code = error.code if isinstance(error, Refused) else "reason"
        return visit.to(f"/invoices/{id}", done=f"refund_{code}")
    return visit.to("/refunds", done="made")


def _act(visit: Visit, id: str, act: Callable[..., Refund], done: str) -> Response:
    visit.own(queries.BY_ID, "rfd", id)
    try:
        act(visit.service.db, id, visit.now)
    except Refused as refused:
        done = refused.code
    return visit.to("/refunds", done=done)
