"""Reads and checks the fields of the form of a payment link."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from btcpay.invoices.links import AMOUNTS, ASKS, HOW, MOST_SUGGESTED, TEXTS, is_nameless
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.texts import MAX_OPTIONAL, TextRefused, check_texts
from btcpay.web.pages.forms import AmountRefused, invisible_character_message
from btcpay.web.pages.languages import gettext
from schemas.requests import NEW_PRICED_LINK, load
from storage.models import PaymentLink

PRICE = AMOUNTS[0]
LIMITS = AMOUNTS[1:]
SUGGESTED = [f"suggested-{number}" for number in range(1, MOST_SUGGESTED + 1)]


class FormTexts(NamedTuple):
    """The valid, non-empty texts, and the messages about invalid ones, by field."""

    texts: dict[str, str]
    errors: dict[str, str]


class FormAmounts(NamedTuple):
    """The valid amounts, and the messages about invalid fields, by field."""

    amounts: dict[str, Decimal]
    errors: dict[str, str]


def read_texts(form: Mapping[str, str]) -> FormTexts:
    """Reads and checks the texts of the form."""
    texts = dict[str, str]()
    field_errors = dict[str, str]()
    for name in TEXTS:
        try:
            text = check_texts({name: form.get(name)})[name]
        except TextRefused as refusal:
            most = gettext(
                "Enter at most %(most)s characters.", most=str(MAX_OPTIONAL[name])
            )
            field_errors[name] = invisible_character_message(refusal) or most
            continue
        if text:
            texts[name] = text
    return FormTexts(texts, field_errors)


def read_amounts(
    visit: Visit,
    link: PaymentLink | None,
    texts: Mapping[str, str],
) -> FormAmounts:
    """Reads the amounts of the form, and checks that they and the title fit together.

    `link` is the link to change; None for a new one. A fixed price cannot be changed.
    """
    amounts = dict[str, Decimal]()
    field_errors = dict[str, str]()
    for name in _amount_fields(link):
        text = visit.form.get(name)
        if text is None:
            continue
        try:
            amounts[name] = visit.amount(text)
        except AmountRefused as refusal:
            field_errors[name] = str(refusal)
    body: dict[str, object] = {"title": texts.get("title")}
    for name in AMOUNTS:
        body[f"{name}_usd"] = amounts.get(name)
    lacks_name = is_nameless(body) and not _has_fixed_price(link)
    if lacks_name and not field_errors:
        field_errors["title"] = gettext(
            "Give the link a title or an amount, so that customers know it."
        )
    return FormAmounts(amounts, field_errors | _contradictions(amounts))


def _has_fixed_price(link: PaymentLink | None) -> bool:
    return link is not None and link.amount is not None


def _amount_fields(link: PaymentLink | None) -> list[str]:
    """Returns the names of the fields with the amounts that can be set for this link.

    `link` is None for a new link.
    """
    names: list[str] = []
    if link is None:
        names.append(PRICE)
    if not _has_fixed_price(link):
        names += [*LIMITS, *SUGGESTED, "goal"]
    return names


def _contradictions(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    """Returns messages about amounts that contradict other amounts, by field."""
    if PRICE in amounts:
        message = gettext("Leave this empty if the price is fixed.")
        return {name: message for name in amounts if name != PRICE}
    low = amounts.get("min_amount")
    high = amounts.get("max_amount")
    if low and high and low > high:
        message = gettext("This must not be less than the smallest amount.")
        return {"max_amount": message}
    return {}


def read_body(
    form: Mapping[str, str],
    texts: Mapping[str, str],
    amounts: Mapping[str, Decimal],
) -> dict[str, Any]:
    """Returns a body of the API's operation create-payment-link, loaded by its schema.

    The result also has the fields that only these pages offer.
    """
    body: dict[str, Any] = dict(texts)
    body |= {f"{name}_usd": amounts[name] for name in AMOUNTS if name in amounts}
    more: dict[str, Any] = {}
    for name in ASKS:
        how = form.get(name)
        if how not in HOW:
            how = HOW[0]
        more[name] = how
    more["goal_usd"] = amounts.get("goal")
    more["suggested"] = [amounts[name] for name in SUGGESTED if name in amounts]
    return load(NEW_PRICED_LINK, body) | more
