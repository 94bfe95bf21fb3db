"""The hosted pages: an invoice's checkout, what it polls, and a payment link's page."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs

import orjson
from flask import Blueprint, Response, redirect, render_template, request
from limits import RateLimitItem

from btcpay import bip21, minting
from btcpay.api import read_body
from btcpay.envelope import error_response
from btcpay.errors import ApiError, NotFound, PriceUnavailable
from btcpay.identifiers import is_id
from btcpay.instants import iso, iso_ms, to_ms
from btcpay.limits import Window, link_invoices
from btcpay.money import btc_text, usd_text
from btcpay.service import Service
from btcpay.standing import rules_for, standing
from schemas.requests import MAX_USD
from storage import invoices, links
from storage.database import Row

DUST_SATS = 294  # Bitcoin Core's dust limit of a P2WPKH output at its default relay fee


class LinkRefused(Exception):
    """Why a payment link makes no invoice now: the page's status and its sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def pages(service: Service) -> Blueprint:
    """The blueprint with /pay and /link."""
    blueprint = Blueprint("checkout", __name__, template_folder="templates")

    def add(path: str, view: Any, method: str = "GET") -> None:
        blueprint.add_url_rule(
            path,
            f"{method} {path}",
            lambda **values: view(service, **values),
            methods=[method],
            provide_automatic_options=False,
        )

    add("/pay/<id>", show_invoice)
    add("/pay/<id>/status", show_status)
    add("/link/<id>", show_link)
    add("/link/<id>", pay_link, "POST")
    blueprint.after_request(_headers)
    blueprint.register_error_handler(ApiError, _error_page)
    return blueprint


def show_invoice(service: Service, id: str) -> Response:
    """The checkout page; `status.js` keeps it up to date, a refresh does the same."""
    row = _invoice(service, id)
    now = service.now()
    verdict = standing(service.db, service.settings, row, now)
    overdue = row["expires_at"] is not None and to_ms(now) >= row["expires_at"]
    uri = bip21.payment_uri(
        row["deposit_address"], verdict.missing_sats or row["amount_sats"], row["description"]
    )
    payable = row["status"] == "open" and verdict.missing_sats > 0 and not overdue
    return _page(
        "invoice.html",
        status=row["status"],
        needed=rules_for(service.settings, row).confirmations,
        verdict=verdict,
        row=row,
        amount_btc=btc_text(row["amount_sats"]),
        amount_usd=usd_text(Decimal(row["amount_usd_quote"])),
        missing_btc=btc_text(verdict.missing_sats),
        uri=uri if payable else None,
        # Without the message: a long one would not fit, and phones read small codes better.
        qr=bip21.qr_svg(uri.partition("&")[0]) if payable else None,
        overdue=overdue,
        dust=row["amount_sats"] < DUST_SATS,
        expires_at=row["expires_at"] and iso_ms(row["expires_at"]),
        checked_at=row["checked_at"] and iso_ms(row["checked_at"]),
    )


def show_status(service: Service, id: str) -> Response:
    """What the page polls: an allow-list of fields."""
    row = _invoice(service, id)
    now = service.now()
    verdict = standing(service.db, service.settings, row, now)
    body = {
        "status": row["status"],
        "amount_sats": row["amount_sats"],
        "received_sats": verdict.received_sats,
        "unconfirmed_sats": verdict.unconfirmed_sats,
        "missing_sats": verdict.missing_sats,
        "confirmations": verdict.confirmations,
        "confirmations_needed": rules_for(service.settings, row).confirmations,
        "expires_at": row["expires_at"] and iso_ms(row["expires_at"]),
        "checked_at": row["checked_at"] and iso_ms(row["checked_at"]),
        "now": iso(now),
    }
    return Response(orjson.dumps(body), mimetype="application/json")


def show_link(service: Service, id: str) -> Response:
    """A payment link's page; a GET writes nothing."""
    return _link_page(_link(service, id))


def pay_link(service: Service, id: str) -> Response:
    """Makes the invoice and leads to it (303); what is wrong comes back on the form."""
    link = _link(service, id)
    try:
        amount_usd = _chosen_amount(link, _form_field("amount_usd"))
        _refuse_full(service.limiter.look(*_visitor_window(service)))
        price_usd = service.prices.current()
        _refuse_full(service.limiter.hit(*_visitor_window(service)))
        order = {
            "amount_usd": amount_usd,
            "description": link["description"] or link["title"],
        }
        life = timedelta(minutes=service.settings.link_invoice_expiry_min)
        with service.db.write():
            link = _link(service, id)
            _refuse_inactive(service, link)
            row = minting.mint(service, link["merchant_id"], order, price_usd, life, link["id"])
    except LinkRefused as refused:
        return _link_page(link, str(refused), refused.status)
    except PriceUnavailable:
        return _link_page(link, "The exchange rate is unavailable right now. Try again soon.", 503)
    # Relative, so that it stays within the origin that the form's policy allows.
    return redirect(f"../pay/{row['id']}", 303)  # type: ignore[return-value]


def _form_field(name: str) -> str:
    fields = parse_qs(read_body().decode("utf-8", "replace"))
    return fields.get(name, [""])[0].strip()


def _chosen_amount(link: Row, text: str) -> Decimal:
    if link["amount_mode"] == "fixed":
        return Decimal(link["amount_usd"])
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        raise LinkRefused(400, "Enter an amount in USD, such as 25 or 19.90.")
    amount_usd = Decimal(text)
    low = Decimal(link["min_amount_usd"] or 0)
    high = Decimal(link["max_amount_usd"] or MAX_USD)
    if not (amount_usd > 0 and low <= amount_usd <= high):
        least = f"from {usd_text(low)}" if low else "above 0"
        raise LinkRefused(400, f"Enter an amount {least} to {usd_text(high)} USD.")
    return amount_usd


def _visitor_window(service: Service) -> tuple[RateLimitItem, str]:
    """So that nobody runs a merchant's wallet past its gap limit alone."""
    item = link_invoices(service.settings.link_invoices_per_visitor)
    return item, request.remote_addr or "unknown"


def _refuse_full(window: Window) -> None:
    if not window.allowed:
        raise LinkRefused(429, "Too many invoices from your address. Try again in an hour.")


def _refuse_inactive(service: Service, link: Row) -> None:
    """Nor together with others. Inside the transaction that mints, so that it still holds."""
    if link["status"] != "active":
        raise LinkRefused(410, "This payment link is no longer active.")
    row = service.db.row(invoices.OPEN_OF_LINK, payment_link_id=link["id"])
    if row is None or row["invoices"] >= service.settings.link_open_invoices:
        raise LinkRefused(429, "Too many unpaid invoices of this link. Try again later.")


def _invoice(service: Service, id: str) -> Row:
    row = service.db.row(invoices.WHOLE, id=id) if is_id("inv", id) else None
    if row is None:
        raise NotFound("There is no such invoice.")
    service.notes.note(invoices.ASKED, row["id"], service.now())
    return row


def _link(service: Service, id: str) -> Row:
    row = service.db.row(links.ANY_BY_ID, id=id) if is_id("lnk", id) else None
    if row is None:
        raise NotFound("There is no such payment link.")
    return row


def _link_page(link: Row, problem: str | None = None, status: int = 200) -> Response:
    if link["status"] != "active":
        return _page("message.html", 410, message="This payment link is no longer active.")
    amounts = {
        name: link[name] and usd_text(Decimal(link[name]))
        for name in ("amount_usd", "min_amount_usd", "max_amount_usd")
    }
    return _page("link.html", status, link=link, problem=problem, **amounts)


def _page(template: str, code: int = 200, **values: Any) -> Response:
    return Response(render_template(template, **values), code, mimetype="text/html")


def _error_page(error: ApiError) -> Response:
    response = error_response(error)
    if request.path.endswith("/status"):
        return response
    return _page("message.html", response.status_code, message=str(error))


def _headers(response: Response) -> Response:
    """Nothing inline, nothing from elsewhere, nothing kept, no frame around it."""
    response.headers["Content-Security-Policy"] = (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "no-store"
    return response
