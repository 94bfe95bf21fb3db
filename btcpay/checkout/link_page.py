"""The values that a payment link's page may show; the reasons why a link makes no invoice."""

from decimal import Decimal
from typing import Any

from btcpay.values.currencies import asked_of
from btcpay.web.service import Service
from storage.models import Invoice, PaymentLink

TYPED_CHARACTERS = 40  # of a wrong amount, when the form shows it again
GONE = 410


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
    link: PaymentLink, refused: LinkRefused | None, typed: str, unpaid: Invoice | None
) -> dict[str, Any]:
    """`typed`: the refused amount. `unpaid`: an invoice of this browser that waits for money."""
    low, high = link.min_amount, link.max_amount
    return {
        "title": link.title,
        "description": link.description,
        "active": link.status == "active" and not (refused and refused.status == GONE),
        "currency": link.currency,
        "fixed": None if link.amount is None else Decimal(link.amount),
        "suggested": [Decimal(text) for text in (link.suggested or "").split()],
        "unpaid": unpaid and {"id": unpaid.id, "asked": asked_of(unpaid)},
        "low": low and Decimal(low),
        "high": high and Decimal(high),
        "refused": refused,
        "typed": typed[:TYPED_CHARACTERS],
    }


def rate_of(service: Service, link: PaymentLink) -> dict[str, Any]:
    """The `price` of a bitcoin in the link's currency as text, or null.

    After `good_for_ms` there is no price any more.
    """
    rate = service.prices.of(link.currency)
    price = rate.current_or_none()
    good_for_ms = int(rate.good_for_s() * 1000)
    return {"price": price and f"{price:f}", "good_for_ms": good_for_ms if price else 0}
