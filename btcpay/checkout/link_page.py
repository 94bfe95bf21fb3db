"""What the page of a payment link may show, an allow-list; and why a link makes no invoice."""

from decimal import Decimal
from typing import Any

from btcpay.merchants.account import DUST_SATS, stored_account
from btcpay.values.currencies import places_of
from btcpay.values.money import sats_for_usd
from btcpay.web.pages.languages import gettext
from btcpay.web.service import Service
from storage.database import Row
from storage.queries import merchants

TYPED_CHARACTERS = 40  # of a wrong amount, when the form shows it again
PATIENCE_S = 1  # for the second currency, after the dollars are there
GONE = 410
# A link with a higher price need not ask what a bitcoin costs: the dust limit is less than this,
# until a bitcoin costs 900,000 USD.
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


def no_price() -> str:
    """What a form says when there is no BTC price."""
    return gettext(
        "The exchange rate is not available right now, so nothing was created."
        " Please try again in a minute."
    )


def link_values(
    link: Row,
    refused: LinkRefused | None,
    typed: str,
    least_sats: int | None,
    unpaid: Row | None,
) -> dict[str, Any]:
    """`least_sats`: what can be sent, when the price is less. `unpaid`: this browser's invoice."""
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


def dust_of(service: Service, link: Row) -> int | None:
    """The least that can be sent, when a fixed price is less and there is a BTC price."""
    if link["amount_usd"] is None or Decimal(link["amount_usd"]) >= NO_DUST_USD:
        return None
    price_usd = service.prices.usd.current_or_none()
    if price_usd is None:
        return None
    least_sats = least_sats_of(service, link)
    amount_sats = sats_for_usd(Decimal(link["amount_usd"]), price_usd)
    return least_sats if amount_sats and amount_sats < least_sats else None


def least_sats_of(service: Service, link: Row) -> int:
    """The least that can be sent to the addresses of the link's merchant."""
    merchant = service.db.only(merchants.BY_ID, id=link["merchant_id"])
    return DUST_SATS[len(stored_account(merchant["descriptor"]).script(0))]


def rates_of(service: Service, link: Row) -> dict[str, Any]:
    """Prices of one bitcoin as text: `usd`, or null; `price` in the merchant's second `currency`.

    `currency` is null without one, and without a price in it; its amounts have `places` decimals.
    After `good_for_ms` there is no price any more.
    """
    currency = service.db.only(merchants.CURRENCY, id=link["merchant_id"])["currency"]
    in_usd, second = service.prices.usd, service.prices.of(currency) if currency else None
    if second:
        second.ask()
    usd, good_for_s = in_usd.current_or_none(), in_usd.good_for_s()
    rates: dict[str, Any] = {"usd": usd and f"{usd:f}", "currency": None}
    if second and (price := second.known(PATIENCE_S)):
        rates |= {"currency": currency, "price": f"{price:f}", "places": places_of(currency)}
        good_for_s = min(good_for_s, second.good_for_s())
    return rates | {"good_for_ms": int(good_for_s * 1000)}
