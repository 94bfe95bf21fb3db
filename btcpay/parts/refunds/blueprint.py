"""The payer's page of a refund: a form for the address, then the refund's progress."""

from urllib.parse import urlencode

from flask import Blueprint, Response, request

from btcpay import hooks
from btcpay.parts.refunds import actions, destination, queries, sums
from btcpay.parts.refunds.kinds import RESOURCE
from btcpay.parts.refunds.models import Refund
from btcpay.values.errors import ChangeRefused
from btcpay.values.statuses import RefundStatus
from btcpay.web.pages import languages
from btcpay.web.pages.forms import read_form
from btcpay.web.pages.render import Pages
from btcpay.web.service import Service
from storage.queries import invoices


def blueprint(service: Service) -> Blueprint:
    page = RefundPage(service)
    views = [("GET", "/refund/<id>", page.show), ("POST", "/refund/<id>", page.take)]
    return page.blueprint("refunds", __name__, views)


class RefundPage(Pages):
    """The page of a refund.

    Its URL is a secret, since everybody who knows the URL can give the address to which
    the money is sent.
    """

    def show(self, id: str) -> Response:
        """Returns the form for the address, or the progress of the refund.

        If the query string has an address, the page asks the payer to confirm it.
        """
        row = RESOURCE.get_or_404(self.service.db, id)
        text = request.args.get("address", "")
        if row.status != RefundStatus.REQUESTED or not text:
            return self._refund_page(row)
        network = self.service.settings.network
        try:
            to = destination.parse(self.service.db, network, text, row.amount_sats)
        except ChangeRefused as refusal:
            return self._refusal_page(row, refusal, text)
        return self._refund_page(row, to=to)

    def take(self, id: str) -> Response:
        """Takes the address in the form, in two requests.

        The first request redirects (303) to the page that asks the payer to confirm the
        address. The second has the field `keep`: it stores the address and redirects
        (303) to the refund's progress. If the address is refused, returns the form with
        the error (400).
        """
        db = self.service.db
        settings = self.service.settings
        fields = read_form()
        row = RESOURCE.get_or_404(db, id)
        text = fields.get("address", "")
        try:
            if "keep" in fields:
                actions.give_address(db, settings, id, text, self.service.now())
                location = f"{id}{languages.language_query()}"
            else:
                to = destination.parse(db, settings.network, text, row.amount_sats)
                query = {"address": to.address} | languages.language_parameter()
                location = f"{id}?{urlencode(query)}"
        except ChangeRefused as refusal:
            # The refusal may say that the refund has changed since it was read above.
            return self._refusal_page(RESOURCE.get_or_404(db, id), refusal, text)
        return Response(status=303, headers={"Location": location})

    def _refusal_page(self, row: Refund, refusal: ChangeRefused, text: str) -> Response:
        """Returns the form with the error, and with the first characters of the refused text."""
        return self._refund_page(row, 400, error_code=refusal.code, entry=text[:100])

    def _refund_page(
        self,
        row: Refund,
        status: int = 200,
        **values: object,
    ) -> Response:
        """Returns the page. `values` replace the default values for its template."""
        brand = self.brand(row.merchant_id)
        with_invoice = self.service.db.get(queries.WITH_INVOICE, id=row.id)
        defaults = {
            "row": row,
            "worth": sums.worth_of(with_invoice),
            "address_to_return_to": self._address_to_return_to(row),
            "network": self.service.settings.network.name,
            "to": None,
            "error_code": "",
        }
        page = self.page("refund.html", status, brand, **defaults | values)
        page.headers["Referrer-Policy"] = "strict-origin"  # the path is a secret
        return page

    def _address_to_return_to(self, row: Refund) -> str | None:
        """Returns where the payer may send back a refund that was sent twice by mistake.

        That is the address to which the invoice was paid. Returns None if no refund of
        the invoice was sent twice.
        """
        db = self.service.db
        if row.status != RefundStatus.SENT or row.invoice_id is None:
            return None
        if not sums.is_sent_twice(db, row.invoice_id):
            return None
        return db.get(invoices.WHOLE, id=row.invoice_id).deposit_address


HOOK = hooks.Pages(blueprint=blueprint)
