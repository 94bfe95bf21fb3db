"""Pressing a payment link's button: the amount, the limits, then the invoice or the reason."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from btcpay.checkout.amounts import parse_usd
from btcpay.errors import PriceUnavailable
from btcpay.invoices import create
from btcpay.languages import formats
from btcpay.pages import languages
from btcpay.pages.languages import gettext
from btcpay.server.service import Service
from btcpay.times import to_ms
from btcpay.web.rate_limits import Window, link_invoices
from schemas.requests import MAX_USD
from storage.database import Row
from storage.queries import invoices, links

GONE = 410
# A link counts its unpaid invoices that were made, or whose page was open, in this time. So people
# who press and leave do not keep others from paying for longer.
LOOKED_AT = timedelta(minutes=10)
MS = timedelta(milliseconds=1)
TYPED_CHARACTERS = 40  # of a wrong amount, when the form shows it again


class LinkRefused(Exception):
    """Why a link makes no invoice now: the page's status and its sentence.

    `field` is true when the amount is wrong; `retry_after_s` says when to come back, if known.
    """

    def __init__(
        self, status: int, message: str, field: bool = False, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.field = field
        self.retry_after_s = retry_after_s


@dataclass(frozen=True)
class Visitor:
    """Who presses: as whom to count, the text of the amount field, this visitor's invoices.

    `form_id` is the id of the invoice that this form makes; None without a form of ours.
    """

    address: str
    amount_text: str
    invoice_ids: Sequence[str] = ()
    form_id: str | None = None

    @property
    def own(self) -> Sequence[str]:
        """The invoices that this visitor may be led back to."""
        return [*([self.form_id] if self.form_id else []), *self.invoice_ids]


def from_elsewhere() -> LinkRefused:
    """Refuses a form that another site sent: its visitors would fill the link unknowingly."""
    return LinkRefused(
        403,
        gettext("Another site asked for this payment. If you want to pay, please press here."),
    )


def link_values(
    link: Row, refused: LinkRefused | None, typed: str, least_sats: int | None
) -> dict[str, Any]:
    """What the page of a link may show: an allow-list, with `refused` and what was typed.

    `least_sats`: the least that can be sent, when the price is less.
    """
    low, high = bounds(link)
    return {
        "title": link["title"],
        "description": link["description"],
        "active": link["status"] == "active" and not (refused and refused.status == GONE),
        "fixed_usd": None if link["amount_usd"] is None else Decimal(link["amount_usd"]),
        "least_sats": least_sats,
        "low": low,
        "high": high,
        "refused": refused,
        "typed": typed[:TYPED_CHARACTERS],
    }


def order(service: Service, link: Row, visitor: Visitor) -> str:
    """The id of the invoice to pay: the visitor's own untouched one of that amount, or a new one.

    The price is asked for outside the transaction. Under the link's lock it looks for the invoice
    again, since the same form may have been sent twice. Raises LinkRefused.
    """
    _refuse_inactive(link)
    amount_usd = _chosen_usd(link, visitor.amount_text)
    if found := _untouched(service, link, amount_usd, visitor.own):
        return found
    item = link_invoices(service.settings.link_invoices_per_visitor)
    _refuse_full(service, service.limiter.look(item, visitor.address))
    with _priced():
        price_usd = create.live_price(service.prices, service.now())
    _refuse_full(service, service.limiter.hit(item, visitor.address))
    with service.db.write():
        _refuse_inactive(service.db.only(links.LOCKED, id=link["id"]))
        if found := _untouched(service, link, amount_usd, visitor.own):
            return found
        _refuse_crowded(service, link)
        return _created(service, link, amount_usd, price_usd, visitor.form_id)


def _created(
    service: Service, link: Row, amount_usd: Decimal, price_usd: Decimal, form_id: str | None
) -> str:
    if form_id and service.db.row(invoices.WHOLE, id=form_id):
        form_id = None  # it has been paid, or its form came with another amount
    order = create.Order(
        link["merchant_id"],
        amount_usd,
        timedelta(minutes=service.settings.link_invoice_expiry_min),
        description=link["description"] or link["title"],
        payment_link_id=link["id"],
        id=form_id,
    )
    network, now = service.settings.network, service.now()
    with _priced():  # a price may ask for more bitcoin than there can be
        return create.new_invoice(service.db, network, now, order, price_usd)["id"]


@contextmanager
def _priced() -> Iterator[None]:
    """Tells the visitor, in place of PriceUnavailable, that there is no price."""
    try:
        yield
    except PriceUnavailable:
        told = gettext(
            "The exchange rate is not available right now, so nothing was created."
            " Please try again in a minute."
        )
        raise LinkRefused(503, told) from None


def _chosen_usd(link: Row, text: str) -> Decimal:
    if link["amount_mode"] == "fixed":
        return Decimal(link["amount_usd"])
    amount_usd = parse_usd(text)
    if amount_usd is None:
        language = languages.current()
        examples = {"one": "25", "other": formats.cents(Decimal("19.90"), language)}
        raise LinkRefused(
            400, gettext("Enter an amount such as %(one)s or %(other)s.", **examples), field=True
        )
    low, high = bounds(link)
    if not (amount_usd > 0 and low <= amount_usd <= high):
        raise LinkRefused(400, _range(low, high), field=True)
    return amount_usd


def bounds(link: Row) -> tuple[Decimal, Decimal]:
    """The least and the greatest amount of a flexible link, in USD; 0 means anything above 0."""
    return Decimal(link["min_amount_usd"] or 0), Decimal(link["max_amount_usd"] or MAX_USD)


def _range(low: Decimal, high: Decimal) -> str:
    language = languages.current()
    texts = {"low": formats.usd(low, language), "high": formats.usd(high, language)}
    if low:
        return gettext("Enter an amount from %(low)s to %(high)s.", **texts)
    return gettext("Enter an amount above 0 and up to %(high)s.", high=texts["high"])


def _untouched(
    service: Service, link: Row, amount_usd: Decimal, invoice_ids: Sequence[str]
) -> str | None:
    """The first of these invoices that is this link's, of that amount, and still to be paid."""
    of_link = {"payment_link_id": link["id"], "now": to_ms(service.now())}
    for invoice_id in invoice_ids:
        row = service.db.row(invoices.UNTOUCHED, id=invoice_id, **of_link)
        if row and Decimal(row["amount_usd_quote"]) == amount_usd:
            return invoice_id
    return None


def _refuse_full(service: Service, window: Window) -> None:
    """Keeps one visitor from using up the wallet's gap limit. Raises LinkRefused."""
    if not window.allowed:
        raise LinkRefused(
            429,
            gettext("Too many invoices were made from your network. Please try again in an hour."),
            retry_after_s=window.retry_after_s(service.now().timestamp()),
        )


def _refuse_inactive(link: Row) -> None:
    if link["status"] != "active":
        raise LinkRefused(GONE, gettext("This payment link is no longer active."))


def _refuse_crowded(service: Service, link: Row) -> None:
    """Keeps many visitors from it. Called in the invoice's transaction, so that it still holds."""
    now = service.now()
    of_link = {"payment_link_id": link["id"], "now": to_ms(now), "since": to_ms(now - LOOKED_AT)}
    row = service.db.only(invoices.WAITED_FOR_OF_LINK, **of_link)
    if row["invoices"] >= service.settings.link_open_invoices:
        leaves_ms = min(row["first_expiry"], row["first_look"] + LOOKED_AT // MS)
        raise LinkRefused(
            429,
            gettext("This link has too many unpaid invoices. Please try again later."),
            retry_after_s=max(1, math.ceil((leaves_ms - to_ms(now)) / 1000)),
        )
