"""The views of payment links' pages."""

from collections.abc import Mapping

from flask import Response, request

from btcpay.checkout.link_cookie import LinkCookie
from btcpay.checkout.link_order import redirect_to_invoice, still_to_pay
from btcpay.checkout.link_page import (
    GONE,
    LinkPage,
    LinkRefused,
    link_values,
    rate_of,
    read_answers,
)
from btcpay.invoices.links import sum_raised
from btcpay.values.errors import InvalidRequest, NotFound, PriceUnavailable
from btcpay.values.ids import is_id
from btcpay.web.errors import STATUS
from btcpay.web.pages.compression import compress
from btcpay.web.pages.forms import error_message, is_amount, new_form_id, read_form
from btcpay.web.pages.render import Pages
from btcpay.web.paths import json_response
from btcpay.web.service import Service
from storage.queries import links


class LinkViews:
    """The views of payment links' pages."""

    def __init__(self, service: Service, pages: Pages) -> None:
        self.service = service
        self.pages = pages
        self._cookie = LinkCookie(service.db, service.settings)

    def show_link(self, id: str) -> Response:
        """Shows the page of a payment link. The URL parameter `amount` fills in an amount.

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
        answers = read_answers(link, fields)
        texts = {**answers.texts, "amount": fields.get("amount", "")}
        if answers.errors:
            refusal = LinkRefused(400, field_errors=answers.errors)
            return self._link_page(link, refusal, texts)
        columns = {
            f"customer_{name}": text or None for name, text in answers.texts.items()
        }
        page = LinkPage(link, columns)
        try:
            return redirect_to_invoice(self.service, self._cookie, page, fields)
        except (InvalidRequest, PriceUnavailable) as error:
            message = error_message(error)
            refusal = LinkRefused(STATUS[error.code], message)
            # Only a flexible link has a field for the amount.
            is_invalid = isinstance(error, InvalidRequest)
            if is_invalid and link.amount_mode == "flexible":
                refusal.field_errors = {"amount": message}
            return self._link_page(link, refusal, texts)
        except LinkRefused as refusal:
            return self._link_page(link, refusal, texts)

    def show_price(self, id: str) -> Response:
        """Returns the exchange rate as JSON. The page's script converts amounts with it."""
        return json_response(rate_of(self.service, self._link(id)))

    def _link(self, id: str) -> links.LinkToPay:
        """Returns the link with this id. Raises NotFound if there is none."""
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
        """Shows the page of a payment link.

        `refusal` is the reason why the page's form was refused; None if it was not.
        `texts` are the texts with which the form is filled in.
        """
        brand = self.pages.brand(link.merchant_id)
        last_invoice_id = self._cookie.last_invoice_id(link.id)
        unpaid = None
        if last_invoice_id:
            unpaid = still_to_pay(self.service, LinkPage(link), last_invoice_id)
        raised = None
        if link.goal:
            raised = sum_raised(self.service.db, link)
        values = link_values(link, refusal, texts or {}, unpaid)
        status = 200
        if refusal:
            status = refusal.status
        elif not values["active"]:
            status = GONE
        page = self.pages.page(
            "link.html",
            status,
            brand,
            press=new_form_id(),
            root=self.service.settings.base_url,
            raised=raised,
            **values,
        )
        if refusal and refusal.retry_after_s:
            page.headers["Retry-After"] = str(refusal.retry_after_s)
        # The id of the visitor's own invoice is a secret, so that page is not compressed.
        if unpaid is None:
            return compress(page)
        return page
