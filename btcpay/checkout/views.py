"""The hosted pages: an invoice's checkout and its status, a payment link's page, their files."""

import re
from collections.abc import Mapping
from urllib.parse import urlencode

from flask import Blueprint, Response, request

from btcpay import hooks
from btcpay.checkout.invoice_page import invoice_values, proofs_of
from btcpay.checkout.link_order import redirect_to_invoice, still_to_pay
from btcpay.checkout.link_page import (
    GONE,
    LinkCookie,
    LinkRefused,
    OfLink,
    answers,
    link_values,
    rate_of,
)
from btcpay.checkout.snapshot import notices_of, snapshot_of, status_of
from btcpay.invoices import emails
from btcpay.invoices.links import sum_raised
from btcpay.merchants import branding
from btcpay.settings.mail_settings import checked_address
from btcpay.values.errors import InvalidRequest, NotFound, PriceUnavailable
from btcpay.values.ids import is_id
from btcpay.web.admission import (
    WindowKeys,
    refuse_other_sites,
    visit_windows,
    visitor_key,
)
from btcpay.web.errors import STATUS, error_response
from btcpay.web.pages import languages, render
from btcpay.web.pages.assets import cached_file, find_asset
from btcpay.web.pages.forms import error_message, is_amount, new_form_id, read_form
from btcpay.web.pages.render import Pages, View
from btcpay.web.paths import json_response
from btcpay.web.rate_limits import LOOKS
from btcpay.web.service import Service
from storage.queries import links, merchants
from storage.queries.payments import MAX_SHOWN


def blueprint(service: Service) -> Blueprint:
    """/pay and /link, and the files that their pages need."""
    checkout = Checkout(service)
    views: list[tuple[str, str, View]] = [
        ("GET", "/", checkout.show_root),
        ("GET", "/pay/<id>", checkout.show_invoice),
        ("GET", "/pay/<id>/status", checkout.show_status),
        ("POST", "/pay/<id>/receipt", checkout.mail_receipt),
        ("GET", "/pay/<id>/proof", checkout.show_proof),
        ("GET", "/pay/<id>/proof.json", checkout.show_proof_file),
        ("GET", "/link/<id>", checkout.show_link),
        ("POST", "/link/<id>", checkout.pay_link),
        ("GET", "/link/<id>/price", checkout.show_price),
        ("GET", "/logo/<sha256>", checkout.show_logo),
        ("GET", "/accent/<name>", checkout.show_accent),
        ("GET", "/assets/<name>", checkout.show_asset),
    ]
    made = checkout.pages.blueprint("checkout", __name__, views, counted)
    made.record_once(lambda state: languages.install(state.app))
    return made


def counted(service: Service) -> WindowKeys:
    """A visit counts for its invoice and for the visitor; files are free."""
    looked_at = (request.view_args or {}).get("id")
    if looked_at is None:
        return
    if is_id("inv", looked_at):
        yield LOOKS, f"{visitor_key(service) or ''} {looked_at}"
    yield from visit_windows(service)


class Checkout:
    def __init__(self, service: Service) -> None:
        self.service = service
        self.pages = Pages(service)
        self._cookie = LinkCookie(service.db, service.settings)

    def show_root(self) -> Response:
        """A browser gets the name of the one merchant, if there is one; a program gets 404."""
        if "text/html" not in request.headers.get("Accept", ""):
            return error_response(NotFound("there is nothing at this path"))
        return self.pages.page("root.html", brand=self.pages.only_brand())

    def show_invoice(self, id: str, wrong: str | None = None) -> Response:
        """`wrong`: what was typed as the address for the receipt, and is none."""
        snapshot = snapshot_of(self.service, id)
        brand = self.pages.brand(snapshot.row.merchant_id)
        page = invoice_values(snapshot, brand, notices_of(self.service, snapshot))
        press = new_form_id() if page["link_id"] else None
        frames = (
            part.frame_of(self.service.db, snapshot.row)
            for part in hooks.of(hooks.InvoiceFrame)
        )
        frame = next(filter(None, frames), None)
        asks = emails.may_ask(self.service.settings, snapshot.row, snapshot.now)
        done = request.args.get("done")
        status = 200 if wrong is None else 400
        asked = {
            "asks_address": asks,
            "wrong": wrong,
            "is_mailed": done == "mailed" and not asks,
        }
        values = {"page": page, "press": press, "frame": frame} | asked
        shown = self.pages.page("invoice.html", status, brand, **values)
        if frame:
            shown.headers["Content-Security-Policy"] = self.pages.policy(
                framed_by=frame["origin"]
            )
        # Only a POST shows again what was typed.
        if request.method == "GET":
            return render.compress(shown)
        return shown

    def mail_receipt(self, id: str) -> Response:
        """Has the receipt mailed to the typed address, if none has been given yet."""
        refuse_other_sites(self.service)
        snapshot = snapshot_of(self.service, id)
        typed = read_form().get("email", "")
        try:
            address = checked_address(typed.strip())
        except ValueError:
            return self.show_invoice(id, wrong=typed)
        if emails.may_ask(self.service.settings, snapshot.row, snapshot.now):
            emails.store_address(self.service.db, snapshot.row, address, snapshot.now)
        to = urlencode({"done": "mailed"} | languages.language_parameter())
        return Response(status=303, headers={"Location": f"../{id}?{to}"})

    def show_status(self, id: str) -> Response:
        return json_response(status_of(snapshot_of(self.service, id)))

    def show_proof(self, id: str) -> Response:
        """The page of the proof, with the documents from which the script proves it again."""
        snapshot = snapshot_of(self.service, id)
        network = self.service.settings.network
        shown = {"proofs": proofs_of(self.service, snapshot), "most": MAX_SHOWN}
        shown |= {"id": id, "address": snapshot.row.deposit_address}
        brand = self.pages.brand(snapshot.row.merchant_id)
        return self.pages.page("proof.html", 200, brand, network=network, **shown)

    def show_proof_file(self, id: str) -> Response:
        """The proof's documents, in the format that `blocktill verify-proof` reads."""
        proofs = proofs_of(self.service, snapshot_of(self.service, id))
        return json_response([proof["document"] for proof in proofs])

    def show_link(self, id: str) -> Response:
        """A payment link's page; `?amount=` proposes one. A GET writes nothing."""
        link = self._link(id)
        amount = request.args.get("amount", "")
        is_one = is_amount(amount, link.currency)
        return self._link_page(link, typed={"amount": amount} if is_one else None)

    def pay_link(self, id: str) -> Response:
        """Leads to the invoice to pay (303), or shows the form again with what is wrong."""
        link = self._link(id)
        fields = read_form()
        typed, wrong = answers(link, fields)
        columns = {f"customer_{name}": text or None for name, text in typed.items()}
        typed["amount"] = fields.get("amount", "")
        try:
            if wrong:
                raise LinkRefused(400, wrong=wrong)
            return redirect_to_invoice(
                self.service, self._cookie, OfLink(link, columns), fields
            )
        except (InvalidRequest, PriceUnavailable) as error:
            is_typed = link.amount_mode == "flexible" and isinstance(
                error, InvalidRequest
            )
            wrong = {"amount": error_message(error)} if is_typed else {}
            why = LinkRefused(STATUS[error.code], error_message(error), wrong)
            return self._link_page(link, why, typed)
        except LinkRefused as refused:
            return self._link_page(link, refused, typed)

    def show_price(self, id: str) -> Response:
        """The price for the link's page to convert the typed amount; it never waits."""
        return json_response(rate_of(self.service, self._link(id)))

    def show_logo(self, sha256: str) -> Response:
        """A merchant's logo, with the media type that was found when it was stored."""
        known = re.fullmatch("[0-9a-f]{64}", sha256)
        row = self.service.db.row(merchants.LOGO, logo_sha256=sha256) if known else None
        if row is None:
            raise NotFound("there is no such logo")
        return cached_file(row.logo or b"", row.logo_type or "")

    def show_accent(self, name: str) -> Response:
        """The style that gives the button its colour: `2563eb.css`. A pure function of the name."""
        accent = f"#{name.removesuffix('.css')}"
        if not re.fullmatch(r"[0-9a-f]{6}\.css", name):
            raise NotFound("there is no such colour")
        colours = f"--accent:{accent};--on-accent:{branding.button_text(accent)}"
        return cached_file(f":root{{{colours}}}\n", "text/css")

    def show_asset(self, name: str) -> Response:
        """Style sheet, script or icon, compressed for a browser that accepts it."""
        found = find_asset(name)
        if found is None:
            raise NotFound("there is no such file")
        asset, is_current = found
        gzipped = request.accept_encodings.quality("gzip") > 0
        content = asset.gzipped if gzipped else asset.content
        response = cached_file(content, asset.media_type, is_current)
        response.headers["Vary"] = "Accept-Encoding"
        if gzipped:
            response.headers["Content-Encoding"] = "gzip"
        return response

    def _link(self, id: str) -> links.LinkToPay:
        row = self.service.db.row(links.TO_PAY, id=id) if is_id("lnk", id) else None
        if row is None:
            raise NotFound("there is no such payment link")
        return row

    def _link_page(
        self,
        link: links.LinkToPay,
        refused: LinkRefused | None = None,
        typed: Mapping[str, str] | None = None,
    ) -> Response:
        brand = self.pages.brand(link.merchant_id)
        last_id = self._cookie.last_invoice_id(link.id)
        unpaid = still_to_pay(self.service, OfLink(link), last_id) if last_id else None
        values = link_values(link, refused, typed or {}, unpaid)
        status = refused.status if refused else 200 if values["active"] else GONE
        values |= {"press": new_form_id(), "root": self.service.settings.base_url}
        values["raised"] = sum_raised(self.service.db, link) if link.goal else None
        page = self.pages.page("link.html", status, brand, **values)
        if refused and refused.retry_after_s:
            page.headers["Retry-After"] = str(refused.retry_after_s)
        return page
