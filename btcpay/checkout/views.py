"""The views of invoices' pages, and the table of all public pages."""

from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, request

from btcpay import hooks
from btcpay.checkout.file_views import FileViews
from btcpay.checkout.invoice_page import invoice_values
from btcpay.checkout.invoice_proofs import proofs_of
from btcpay.checkout.link_views import LinkViews
from btcpay.checkout.notices import notices_of, returned_sats
from btcpay.checkout.snapshot import Snapshot, snapshot_of, status_of
from btcpay.invoices import emails
from btcpay.settings.mail_settings import checked_address
from btcpay.values.errors import NotFound
from btcpay.values.ids import is_id
from btcpay.web.admission import (
    WindowKeys,
    refuse_other_sites,
    visit_windows,
    visitor_key,
)
from btcpay.web.errors import error_response
from btcpay.web.pages import languages
from btcpay.web.pages.compression import compress
from btcpay.web.pages.forms import new_form_id, read_form
from btcpay.web.pages.render import Pages, View
from btcpay.web.paths import json_response
from btcpay.web.rate_limits import LOOKS
from btcpay.web.service import Service
from storage.queries.payments import MAX_SHOWN


def blueprint(service: Service) -> Blueprint:
    """Returns the blueprint of /pay and /link, and of the files these pages need."""
    checkout = Checkout(service)
    link = LinkViews(service, checkout.pages)
    file = FileViews(service)
    views: list[tuple[str, str, View]] = [
        ("GET", "/", checkout.show_root),
        ("GET", "/pay/<id>", checkout.show_invoice),
        ("GET", "/pay/<id>/status", checkout.show_status),
        ("POST", "/pay/<id>/receipt", checkout.mail_receipt),
        ("GET", "/pay/<id>/proof", checkout.show_proof),
        ("GET", "/pay/<id>/proof.json", checkout.show_proof_file),
        ("GET", "/link/<id>", link.show_link),
        ("POST", "/link/<id>", link.pay_link),
        ("GET", "/link/<id>/price", link.show_price),
        ("GET", "/logo/<sha256>", file.show_logo),
        ("GET", "/accent/<name>", file.show_accent),
        ("GET", "/assets/<name>", file.show_asset),
    ]
    blueprint = checkout.pages.blueprint("checkout", __name__, views, windows)
    blueprint.record_once(lambda state: languages.install(state.app))
    return blueprint


def windows(service: Service) -> WindowKeys:
    """Yields the rate-limit windows that count this request.

    One window counts the visitor's requests for this invoice, another one counts all
    requests of the visitor. Requests for static files are not counted.
    """
    id = (request.view_args or {}).get("id")
    if id is None:
        return
    # Visitors who may share an address have no key. They share one window for an invoice.
    if is_id("inv", id):
        yield LOOKS, f"{visitor_key(service) or ''} {id}"
    yield from visit_windows(service)


class Checkout:
    """The views of the root page and of invoices' pages."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.pages = Pages(service)

    def show_root(self) -> Response:
        """Shows the front page, with the links of parts (optional plug-ins).

        If the service has a single merchant, the page also has the merchant's name. A
        client that does not accept HTML gets the status 404.
        """
        if "text/html" not in request.headers.get("Accept", ""):
            return error_response(NotFound("there is nothing at this path"))
        links = []
        for part in hooks.of(hooks.Pages):
            if part.front_page_link is None:
                continue
            link = part.front_page_link(self.service.settings)
            if link:
                links.append(link)
        page = self.pages.page("root.html", brand=self.pages.only_brand(), links=links)
        return compress(page)

    def show_invoice(self, id: str, invalid_email: str | None = None) -> Response:
        """Shows the page of an invoice.

        `invalid_email` is a text that the payer entered although it is no e-mail
        address. The page shows this text again. None means that no such text was entered.
        """
        snapshot = snapshot_of(self.service, id)
        brand = self.pages.brand(snapshot.row.merchant_id)
        page = invoice_values(snapshot, brand, notices_of(self.service, snapshot))
        frame = self._frame_of(snapshot)
        press = None
        if page["link_id"]:
            press = new_form_id()
        asks_address = emails.may_ask(
            self.service.db, self.service.settings, snapshot.row, snapshot.now
        )
        # The URL alone proves nothing: while the page asks for an address, none is stored.
        is_mailed = request.args.get("done") == "mailed" and not asks_address
        status = 200
        if invalid_email is not None:
            status = 400
        response = self.pages.page(
            "invoice.html",
            status,
            brand,
            page=page,
            press=press,
            frame=frame,
            asks_address=asks_address,
            invalid_email=invalid_email,
            is_mailed=is_mailed,
        )
        if frame:
            policy = self.pages.policy(framed_by=frame["origin"])
            response.headers["Content-Security-Policy"] = policy
        return compress(response)

    def _frame_of(self, snapshot: Snapshot) -> Any:
        """Returns the site that may show the invoice's page in a frame; None if no site may.

        The first part (an optional plug-in) that names a site decides.
        """
        for part in hooks.of(hooks.InvoiceFrame):
            frame = part.frame_of(self.service.db, snapshot.row)
            if frame:
                return frame
        return None

    def mail_receipt(self, id: str) -> Response:
        """Stores the payer's e-mail address, and puts the receipt into the outbox.

        If the page may not ask for an address, for example because the invoice has one
        already, nothing is stored or sent. Redirects (303) to the invoice in both cases.
        If the address is invalid, shows the form again (400).
        """
        refuse_other_sites(self.service)
        snapshot = snapshot_of(self.service, id)
        text = read_form().get("email", "")
        try:
            address = checked_address(text.strip())
        except ValueError:
            return self.show_invoice(id, invalid_email=text)
        db = self.service.db
        if emails.may_ask(db, self.service.settings, snapshot.row, snapshot.now):
            emails.store_address(db, snapshot.row, address, snapshot.now)
        query = urlencode({"done": "mailed"} | languages.language_parameter())
        return Response(status=303, headers={"Location": f"../{id}?{query}"})

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
        return compress(page)

    def show_proof_file(self, id: str) -> Response:
        """Returns the payment proofs in the format of `blocktill verify-proof`."""
        proofs = proofs_of(self.service, snapshot_of(self.service, id))
        return json_response([proof["document"] for proof in proofs])
