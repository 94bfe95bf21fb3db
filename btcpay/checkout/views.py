"""The views of the public pages: invoices, payment links, and the files they need."""

import re
from collections.abc import Mapping
from urllib.parse import urlencode

from flask import Blueprint, Response, request

from btcpay import hooks
from btcpay.checkout.invoice_page import invoice_values, proofs_of
from btcpay.checkout.link_cookie import LinkCookie
from btcpay.checkout.link_order import redirect_to_invoice, still_to_pay
from btcpay.checkout.link_page import (
    GONE,
    LinkPage,
    LinkRefused,
    answers,
    link_values,
    rate_of,
)
from btcpay.checkout.snapshot import (
    notices_of,
    returned_sats,
    snapshot_of,
    status_of,
)
from btcpay.invoices import emails
from btcpay.invoices.links import sum_raised
from btcpay.settings.mail_settings import checked_address
from btcpay.values.colours import button_text
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
    """Returns the blueprint of /pay and /link, and of the files these pages need."""
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
    blueprint = checkout.pages.blueprint("checkout", __name__, views, windows)
    blueprint.record_once(lambda state: languages.install(state.app))
    return blueprint


def windows(service: Service) -> WindowKeys:
    """Yields the rate-limit windows that count this request.

    One counts the visitor's requests for this invoice, another all requests of the
    visitor. Requests for static files are not counted.
    """
    id = (request.view_args or {}).get("id")
    if id is None:
        return
    if is_id("inv", id):
        yield LOOKS, f"{visitor_key(service) or ''} {id}"
    yield from visit_windows(service)


class Checkout:
    """The views of the public pages."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.pages = Pages(service)
        self._cookie = LinkCookie(service.db, service.settings)

    def show_root(self) -> Response:
        """Shows the front page, with the name of the merchant if there is only one.

        The page has the links of parts (optional plug-ins). A client that does not accept
        HTML gets the status 404.
        """
        if "text/html" not in request.headers.get("Accept", ""):
            return error_response(NotFound("there is nothing at this path"))
        links = []
        for part in hooks.of(hooks.Pages):
            if part.front_page_link:
                links.append(part.front_page_link(self.service.settings))
        page = self.pages.page(
            "root.html",
            brand=self.pages.only_brand(),
            links=[link for link in links if link],
        )
        return render.compress(page)

    def show_invoice(self, id: str, invalid_email: str | None = None) -> Response:
        """Shows the page of an invoice.

        `invalid_email` is a text that the payer entered and that is no e-mail address;
        the page shows it again. None means that nothing invalid was entered.
        """
        snapshot = snapshot_of(self.service, id)
        brand = self.pages.brand(snapshot.row.merchant_id)
        page = invoice_values(snapshot, brand, notices_of(self.service, snapshot))
        frames = (
            part.frame_of(self.service.db, snapshot.row)
            for part in hooks.of(hooks.InvoiceFrame)
        )
        frame = next(filter(None, frames), None)
        asks = emails.may_ask(
            self.service.db, self.service.settings, snapshot.row, snapshot.now
        )
        outcome = request.args.get("done")
        values = {
            "page": page,
            "press": new_form_id() if page["link_id"] else None,
            "frame": frame,
            "asks_address": asks,
            "invalid_email": invalid_email,
            "is_mailed": outcome == "mailed" and not asks,
        }
        status = 200
        if invalid_email is not None:
            status = 400
        response = self.pages.page("invoice.html", status, brand, **values)
        if frame:
            policy = self.pages.policy(framed_by=frame["origin"])
            response.headers["Content-Security-Policy"] = policy
        return render.compress(response)

    def mail_receipt(self, id: str) -> Response:
        """Stores the e-mail address in the form, and puts the receipt into the outbox.

        Does neither if the invoice's page may not ask for an address (`emails.may_ask`).
        Redirects (303) to the invoice in both cases. If the address is invalid, shows
        the form again (400).
        """
        refuse_other_sites(self.service)
        snapshot = snapshot_of(self.service, id)
        text = read_form().get("email", "")
        try:
            address = checked_address(text.strip())
        except ValueError:
            return self.show_invoice(id, invalid_email=text)
        if emails.may_ask(
            self.service.db, self.service.settings, snapshot.row, snapshot.now
        ):
            emails.store_address(self.service.db, snapshot.row, address, snapshot.now)
        to = urlencode({"done": "mailed"} | languages.language_parameter())
        return Response(status=303, headers={"Location": f"../{id}?{to}"})

    def show_status(self, id: str) -> Response:
        snapshot = snapshot_of(self.service, id)
        returned = returned_sats(self.service.db, snapshot)
        return json_response(status_of(snapshot, returned))

    def show_proof(self, id: str) -> Response:
        """Shows the page with the payment proofs, which its script verifies again."""
        snapshot = snapshot_of(self.service, id)
        network = self.service.settings.network
        brand = self.pages.brand(snapshot.row.merchant_id)
        page = self.pages.page(
            "proof.html",
            200,
            brand,
            network=network,
            proofs=proofs_of(self.service, snapshot),
            most=MAX_SHOWN,
            id=id,
            address=snapshot.row.deposit_address,
        )
        return render.compress(page)

    def show_proof_file(self, id: str) -> Response:
        """Returns the payment proofs in the format of `blocktill verify-proof`."""
        proofs = proofs_of(self.service, snapshot_of(self.service, id))
        return json_response([proof["document"] for proof in proofs])

    def show_link(self, id: str) -> Response:
        """Shows the page of a payment link; `?amount=` fills in an amount.

        Writes nothing to the database.
        """
        link = self._link(id)
        amount = request.args.get("amount", "")
        if not is_amount(amount, link.currency):
            return self._link_page(link)
        return self._link_page(link, texts={"amount": amount})

    def pay_link(self, id: str) -> Response:
        """Creates or finds the invoice to pay, and redirects (303) to it.

        An invalid form is shown again.
        """
        link = self._link(id)
        fields = read_form()
        texts, field_errors = answers(link, fields)
        columns = {f"customer_{name}": text or None for name, text in texts.items()}
        texts["amount"] = fields.get("amount", "")
        if field_errors:
            refusal = LinkRefused(400, field_errors=field_errors)
            return self._link_page(link, refusal, texts)
        page = LinkPage(link, columns)
        try:
            return redirect_to_invoice(self.service, self._cookie, page, fields)
        except (InvalidRequest, PriceUnavailable) as error:
            message = error_message(error)
            refusal = LinkRefused(STATUS[error.code], message)
            is_invalid = isinstance(error, InvalidRequest)
            if is_invalid and link.amount_mode == "flexible":
                refusal.field_errors = {"amount": message}
            return self._link_page(link, refusal, texts)
        except LinkRefused as refusal:
            return self._link_page(link, refusal, texts)

    def show_price(self, id: str) -> Response:
        """Returns the exchange rate, with which the page's script converts the amount."""
        return json_response(rate_of(self.service, self._link(id)))

    def show_logo(self, sha256: str) -> Response:
        """Returns a merchant's logo, with the media type that was stored with it.

        Raises NotFound if no logo has this hash.
        """
        row = None
        if re.fullmatch("[0-9a-f]{64}", sha256):
            row = self.service.db.get_or_none(merchants.LOGO, logo_sha256=sha256)
        if row is None:
            raise NotFound("there is no such logo")
        return cached_file(row.logo or b"", row.logo_type or "")

    def show_accent(self, name: str) -> Response:
        """Returns the style sheet that sets a colour in elements of the class `branded`.

        `name` is the colour with a suffix, such as `2563eb.css`. Raises NotFound for
        any other name.
        """
        accent = f"#{name.removesuffix('.css')}"
        if not re.fullmatch(r"[0-9a-f]{6}\.css", name):
            raise NotFound("there is no such colour")
        colours = f"--accent:{accent};--on-accent:{button_text(accent)}"
        return cached_file(f".branded{{{colours}}}\n", "text/css")

    def show_asset(self, name: str) -> Response:
        """Returns a style sheet, script or icon, compressed if the browser accepts gzip.

        Raises NotFound if there is no such file.
        """
        match = find_asset(name)
        if match is None:
            raise NotFound("there is no such file")
        asset, is_current = match
        if request.accept_encodings.quality("gzip") > 0:
            response = cached_file(asset.gzipped, asset.media_type, is_current)
            response.headers["Content-Encoding"] = "gzip"
        else:
            response = cached_file(asset.content, asset.media_type, is_current)
        response.headers["Vary"] = "Accept-Encoding"
        return response

    def _link(self, id: str) -> links.LinkToPay:
        row = None
        if is_id("lnk", id):
            row = self.service.db.get_or_none(links.TO_PAY, id=id)
        if row is None:
            raise NotFound("there is no such payment link")
        return row

    def _link_page(
        self,
        link: links.LinkToPay,
        refusal: LinkRefused | None = None,
        texts: Mapping[str, str] | None = None,
    ) -> Response:
        brand = self.pages.brand(link.merchant_id)
        last_id = self._cookie.last_invoice_id(link.id)
        unpaid = None
        if last_id:
            unpaid = still_to_pay(self.service, LinkPage(link), last_id)
        values = link_values(link, refusal, texts or {}, unpaid)
        values["press"] = new_form_id()
        values["root"] = self.service.settings.base_url
        values["raised"] = None
        if link.goal:
            values["raised"] = sum_raised(self.service.db, link)
        status = 200
        if refusal:
            status = refusal.status
        elif not values["active"]:
            status = GONE
        page = self.pages.page("link.html", status, brand, **values)
        if refusal and refusal.retry_after_s:
            page.headers["Retry-After"] = str(refusal.retry_after_s)
        if unpaid is None:
            return render.compress(page)
        return page
