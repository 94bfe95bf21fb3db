"""What the page of a payment link may show, an allow-list; and why a link makes no invoice."""

from decimal import Decimal
from typing import Any

from btcpay.invoices.create import least_sats_of
from btcpay.values.money import asked_of, sats_for
from btcpay.web.service import Service
from storage.models import Invoice, PaymentLink

TYPED_CHARACTERS = 40  # of a wrong amount, when the form shows it again
GONE = 410
# A link with a higher price in dollars need not ask what a bitcoin costs: the dust limit is less
# than this, until a bitcoin costs 900,000 USD. Other currencies may lose more of their value.
NO_DUST_USD = Decimal(5)


class LinkRefused(Exception):
    """The page's status and its sentence; `field`: the amount is wrong."""

    def __init__(
        self, status: int, message: str, field: bool = False, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.field = field
        self.retry_after_s = retry_after_s


def link_values(
    link: PaymentLink,
    refused: LinkRefused | None,
    typed: str,
    least_sats: int | None,
    unpaid: Invoice | None,
) -> dict[str, Any]:
    """`least_sats`: what can be sent, when the price is less. `unpaid`: this browser's invoice."""
    low, high = link.min_amount, link.max_amount
    return {
        "title": link.title,
        "description": link.description,
        "active": link.status == "active" and not (refused and refused.status == GONE),
        "currency": link.currency,
        "fixed": None if link.amount is None else Decimal(link.amount),
        "suggested": [Decimal(text) for text in (link.suggested or "").split()],
        "least_sats": least_sats,
        "unpaid": unpaid and {"id": unpaid.id, "asked": asked_of(unpaid)},
        "low": low and Decimal(low),
        "high": high and Decimal(high),
        "refused": refused,
        "typed": typed[:TYPED_CHARACTERS],
    }


def dust_of(service: Service, link: PaymentLink) -> int | None:
    """The least that can be sent, when a fixed price is less and there is a BTC price."""
    if link.amount is None:
        return None
    if link.currency == "USD" and Decimal(link.amount) >= NO_DUST_USD:
        return None
    price = service.prices.of(link.currency).current_or_none()
    if price is None:
        return None
    least_sats = least_sats_of(service.db, link.merchant_id)
    amount_sats = sats_for(Decimal(link.amount), price)
    return least_sats if amount_sats and amount_sats < least_sats else None


def rate_of(service: Service, link: PaymentLink) -> dict[str, Any]:
    """The `price` of a bitcoin in the link's currency as text, or null.

    After `good_for_ms` there is no price any more.
    """
    rate = service.prices.of(link.currency)
    price = rate.current_or_none()
    good_for_ms = int(rate.good_for_s() * 1000)
    return {"price": price and f"{price:f}", "good_for_ms": good_for_ms if price else 0}
