"""A payment link as a page that makes invoices: what its form orders, while it is active."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

from btcpay.checkout.link_page import GONE, LinkRefused
from btcpay.invoices import create
from btcpay.invoices.links import bounds
from btcpay.web.pages.forms import read_amount
from btcpay.web.pages.languages import gettext
from btcpay.web.service import Service
from storage.models import PaymentLink
from storage.queries import invoices, links


@dataclass(frozen=True)
class OfLink:
    """A payment link's page; `answers` has what it asked of the payer, as columns."""

    link: PaymentLink
    answers: Mapping[str, str | None] = field(default_factory=dict)
    through = invoices.THROUGH_LINK
    is_for_one = False

    @property
    def id(self) -> str:
        return self.link.id

    def order(self, service: Service, text: str) -> create.Order:
        _refuse_inactive(self.link)
        order = _asked_for(service, self.link, text)
        return order._replace(details={**order.details, **self.answers})

    def lock(self, service: Service, order: create.Order) -> None:
        _refuse_inactive(service.db.only(links.LOCKED, id=self.link.id))


def _asked_for(service: Service, link: PaymentLink, text: str) -> create.Order:
    """An invoice of the link's price, or of the amount in this text. Raises AmountRefused."""
    high = None
    if link.amount is not None:
        amount = Decimal(link.amount)
    else:
        low, high = bounds(link)
        amount = read_amount(text, link.currency, low, high)
    return create.Order(
        link.merchant_id,
        amount,
        timedelta(minutes=service.settings.link_invoice_expiry_min),
        {"description": link.description or link.title, "payment_link_id": link.id},
        link.currency,
        high,
    )


def _refuse_inactive(link: PaymentLink) -> None:
    if link.status != "active":
        raise LinkRefused(GONE, gettext("This payment link is no longer active."))
