"""What the page of a payment link may show: an allow-list, so that no more of a row gets out."""

from decimal import Decimal
from typing import Any

from btcpay.checkout.link_refused import GONE, LinkRefused
from storage.database import Row

TYPED_CHARACTERS = 40  # of a wrong amount, when the form shows it again


def link_values(
    link: Row,
    refused: LinkRefused | None,
    typed: str,
    least_sats: int | None,
    unpaid: Row | None,
) -> dict[str, Any]:
    """The values of the template, with `refused` and what was typed.

    `least_sats`: the least that can be sent, when the price is less. `unpaid`: the invoice that
    this browser has made here and not paid yet.
    """
    low, high = (link[f"{which}_amount_usd"] for which in ("min", "max"))
    return {
        "title": link["title"],
        "description": link["description"],
        "active": link["status"] == "active" and not (refused and refused.status == GONE),
        "fixed_usd": None if link["amount_usd"] is None else Decimal(link["amount_usd"]),
        "suggested": [Decimal(text) for text in (link["suggested"] or "").split()],
        "least_sats": least_sats,
        "unpaid": unpaid and {"id": unpaid["id"], "usd": Decimal(unpaid["amount_usd_quote"])},
        "low": low and Decimal(low),
        "high": high and Decimal(high),
        "refused": refused,
        "typed": typed[:TYPED_CHARACTERS],
    }
