"""The page of a payment link: its form's fields, its orders and its errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from btcpay.invoices import orders
from btcpay.invoices.links import bounds
from btcpay.merchants.account import dust_limit_of_account
from btcpay.settings.mail_settings import checked_address
from btcpay.values.money import amount_due, places_of
from btcpay.values.statuses import LinkStatus
from btcpay.values.texts import TextRefused, line_of, lines_of
from btcpay.web.pages.forms import invisible_character_message, read_amount
from btcpay.web.pages.languages import gettext
from btcpay.web.service import Service
from storage.models import Invoice, PaymentLink
from storage.queries import invoices, links

REPEATED_CHARACTERS = 40  # of an invalid amount that the form shows again
GONE = 410
MOST = {"name": 100, "note": 500}  # the maximum of characters that the payer may type
Texts = dict[str, str]


@dataclass(eq=False)
class LinkRefused(Exception):
    """The page refuses to create an invoice.

    - `status`: the HTTP status of the response.
    - `message`: a sentence for the page; "" if there is none.
    - `field_errors`: a sentence about each invalid field, by the field's name.
    - `retry_after_s`: the number of seconds after which a retry may succeed; None if
      that is not known.
    """

    status: int
    message: str = ""
    field_errors: Mapping[str, str] = field(default_factory=dict)
    retry_after_s: int | None = None


def link_values(
    link: PaymentLink,
    refusal: LinkRefused | None,
    texts: Mapping[str, str],
    unpaid: Invoice | None,
) -> dict[str, Any]:
    """Returns the values for the template of a payment link's page.

    `refusal` says why no invoice was created; None if the form was not sent. `texts` are
    the texts with which the form is filled in, such as those of a refused form. `unpaid`
    is this browser's last invoice if it still waits for a payment, else None.
    """
    is_gone = refusal is not None and refusal.status == GONE
    unpaid_values = None
    if unpaid:
        unpaid_values = {"id": unpaid.id, "asked": amount_due(unpaid)}
    amount_text = texts.get("amount", "")[:REPEATED_CHARACTERS]
    return {
        "title": link.title,
        "description": link.description,
        "active": link.status == LinkStatus.ACTIVE and not is_gone,
        "currency": link.currency,
        "places": places_of(link.currency),
        "fixed": _decimal_or_none(link.amount),
        "suggested": [Decimal(text) for text in (link.suggested or "").split()],
        "unpaid": unpaid_values,
        "low": _decimal_or_none(link.min_amount),
        "high": _decimal_or_none(link.max_amount),
        "goal": _decimal_or_none(link.goal),
        "refusal": refusal,
        "asks": asks_of(link),
        "most": MOST,
        "entries": {**texts, "amount": amount_text},
    }


def _decimal_or_none(text: str | None) -> Decimal | None:
    if text is None:
        return None
    return Decimal(text)


def asks_of(link: PaymentLink) -> Texts:
    """Returns "may" or "must" for each field that the payer fills in, by the field's name."""
    asks = {"email": link.ask_email, "name": link.ask_name, "note": link.ask_note}
    return {name: how for name, how in asks.items() if how != "no"}


class FormAnswers(NamedTuple):
    """The texts that the payer entered, and the messages about invalid ones, by field."""

    texts: Texts
    errors: Texts


def read_answers(link: PaymentLink, fields: Mapping[str, str]) -> FormAnswers:
    """Reads the form's fields that the link asks the payer for.

    An invalid text is in the result too, so that the form can show it again.
    """
    texts = Texts()
    field_errors = Texts()
    for name, how in asks_of(link).items():
        text = fields.get(name, "").replace("\r\n", "\n").strip()
        try:
            text = _read_answer(name, text)
        except ValueError:
            field_errors[name] = gettext("This is not an e-mail address.")
        except TextRefused as error:
            most = gettext("Enter at most %(most)s characters.", most=str(MOST[name]))
            field_errors[name] = invisible_character_message(error) or most
        texts[name] = text
        if how == "must" and not text:
            field_errors[name] = gettext("The seller needs this.")
    return FormAnswers(texts, field_errors)


def _read_answer(name: str, text: str) -> str:
    """Returns the text of the field `name` in the form in which it is stored.

    Raises TextRefused for an invalid name or note, and ValueError for a text that is no
    e-mail address.
    """
    if name == "name":
        return line_of(name, text, MOST[name])
    if name == "note":
        return lines_of(name, text, MOST[name])
    if text:
        checked_address(text)
    return text


def rate_of(service: Service, link: PaymentLink) -> dict[str, Any]:
    """Returns a JSON object with the price of one bitcoin in the link's currency.

    `price` is a decimal string; None if there is no valid price. `good_for_ms` is the
    number of milliseconds for which the price may be used.
    """
    rate = service.prices.rate_for(link.currency)
    price = rate.current_price_or_none()
    if price is None:
        return {"price": None, "good_for_ms": 0}
    return {"price": f"{price:f}", "good_for_ms": int(rate.valid_for_s() * 1000)}


@dataclass(frozen=True)
class LinkPage:
    """The page of a payment link. Implements the protocol `Page` in payment_page.py.

    `answers` maps columns of the invoice to the texts that the payer entered.
    """

    link: links.LinkToPay
    answers: Mapping[str, str | None] = field(default_factory=dict)
    unpaid_counts = invoices.WAITED_FOR_OF_LINK
    is_for_one = False

    @property
    def id(self) -> str:
        return self.link.id

    def order(self, service: Service, text: str) -> orders.Order:
        """Returns the order from which an invoice is created.

        The order's amount is fixed by the link, or is the one that the payer typed
        (`text`). Raises AmountRefused if `text` is no valid amount, and LinkRefused if
        the link is inactive.
        """
        link = self.link
        _refuse_inactive(link)
        if link.amount is not None:
            amount = Decimal(link.amount)
            high = None
            dust_limit_sats = 0
        else:
            low, high = bounds(link)
            amount = read_amount(text, link.currency, low, high)
            dust_limit_sats = dust_limit_of_account(link.descriptor)
        details = {
            "description": link.description or link.title,
            "payment_link_id": link.id,
            **self.answers,
        }
        life = timedelta(minutes=service.settings.link_invoice_expiry_min)
        return orders.Order(
            link.merchant_id,
            amount,
            life,
            details,
            currency=link.currency,
            high=high,
            dust_limit_sats=dust_limit_sats,
        )

    def lock(self, service: Service, order: orders.Order) -> None:
        _refuse_inactive(service.db.get(links.LOCKED, id=self.link.id))


def _refuse_inactive(link: PaymentLink) -> None:
    """Raises LinkRefused if the link is inactive."""
    if link.status != LinkStatus.ACTIVE:
        raise LinkRefused(GONE, gettext("This payment link is no longer active."))
