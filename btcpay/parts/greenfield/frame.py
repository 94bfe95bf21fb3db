"""The script with which a shop shows an invoice's page in a frame, and redirects to it."""

import json
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, request

from btcpay import hooks
from btcpay.parts.greenfield import queries
from btcpay.values.errors import NotFound
from btcpay.values.ids import is_id
from btcpay.web.pages import languages
from btcpay.web.pages.assets import file_response
from btcpay.web.pages.render import Pages, path_to_root
from btcpay.web.paths import add_path
from btcpay.web.service import Service
from storage.database import Database
from storage.models import Invoice


def shop_pages(service: Service) -> Blueprint:
    """Returns the blueprint of the script, and of the paths that redirect to an invoice's page."""
    pages = Pages(service)
    script = Path(__file__).with_name("static").joinpath("modal.js").read_text("utf-8")
    blueprint = Blueprint("pages", __name__)
    add_path(
        blueprint,
        "/modal/btcpay.js",
        lambda: file_response(script, "text/javascript", is_immutable=False),
        "modal",
    )
    for path in ("/invoice", "/i/<invoice_id>"):
        add_path(blueprint, path, lead_to_invoice, path)
    blueprint.after_request(pages.add_security_headers)
    blueprint.register_error_handler(Exception, pages.payer_error_page)
    return blueprint


def lead_to_invoice(invoice_id: str = "") -> Response:
    """Redirects (302) to the page of the invoice whose id is in the path, or in `?id=`.

    Raises NotFound if this is no invoice's id.
    """
    id = invoice_id or request.args.get("id", "")
    if not is_id("inv", id):
        raise NotFound("there is no such invoice")
    location = f"{path_to_root()}pay/{id}{languages.language_query()}"
    return Response(status=302, headers={"Location": location})


def frame_of(db: Database, invoice: Invoice) -> dict[str, Any] | None:
    """Returns which shop may show the invoice's page in a frame.

    The result is None if the invoice belongs to no shop. Otherwise it has two values:
    `origin` is the scheme, host and port of the shop, and `leads_back` is True if the
    page returns the visitor to the shop without a click.
    """
    if invoice.store_id is None:
        return None
    origin = db.get(queries.BY_ID, id=invoice.store_id).shop_url
    shop_order = json.loads(invoice.shop_order or "{}")
    return {
        "origin": origin,
        "leads_back": shop_order.get("redirectAutomatically", False),
    }


HOOK = hooks.InvoiceFrame(frame_of=frame_of)
