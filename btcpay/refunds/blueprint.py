"""The payer's page of a refund: it takes an address, and says what happens next, and when."""

from flask import Blueprint, Response

from btcpay.refunds import acts, destination, queries
from btcpay.values.errors import NotFound, Refused
from btcpay.values.ids import is_id
from btcpay.web.admission import door, visits
from btcpay.web.pages.forms import fields_of_form
from btcpay.web.pages.languages import carried
from btcpay.web.pages.render import Pages
from btcpay.web.paths import add_path
from btcpay.web.service import Service
from storage.models import Refund


def blueprint(service: Service) -> Blueprint:
    page = RefundPage(service)
    made = Blueprint("refunds", __name__, template_folder="templates")
    add_path(made, "/refund/<id>", page.show, "GET /refund/<id>", "GET")
    add_path(made, "/refund/<id>", page.take, "POST /refund/<id>", "POST")
    made.before_request(door(service, lambda _: visits(service)))
    made.after_request(page.pages.guard)
    made.register_error_handler(Exception, page.pages.failed_for_payer)
    return made


class RefundPage:
    """The page of a refund. Its URL is a secret: whoever knows it may give the payer's address."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.pages = Pages(service, service.settings.frame_ancestors)

    def show(self, id: str) -> Response:
        return self._page(self._refund(id))

    def take(self, id: str) -> Response:
        """Shows the address back, and keeps it at the second press."""
        row, fields = self._refund(id), fields_of_form()
        text, settings = fields.get("address", ""), self.service.settings
        try:
            if "keep" in fields:
                acts.give(self.service.db, settings, id, text, self.service.now())
                return Response(status=303, headers={"Location": f"{id}{carried()}"})
            to = destination.read(self.service.db, settings.network, text, row.amount_sats)
        except Refused as refused:
            return self._page(self._refund(id), 400, wrong=refused.code, typed=text[:100])
        return self._page(row, to=to)

    def _refund(self, id: str) -> Refund:
        row = self.service.db.row(queries.BY_ID, id=id) if is_id("rfd", id) else None
        if row is None:
            raise NotFound("there is no such refund")
        return row

    def _page(self, row: Refund, status: int = 200, **values: object) -> Response:
        brand = self.pages.brand(row.merchant_id)
        network = self.service.settings.network.name
        shown = {"row": row, "network": network, "to": None, "wrong": ""} | values
        page = self.pages.page("refund.html", status, brand, **shown)
        page.headers["Referrer-Policy"] = "strict-origin"  # its path is a secret
        return page
