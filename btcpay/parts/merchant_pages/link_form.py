"""The merchant's form that creates a payment link, or changes an existing one."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from flask import Response

from btcpay.invoices.links import ASKS, HOW, TEXTS, edit, new_link
from btcpay.invoices.quotes import live_price
from btcpay.languages import formats
from btcpay.parts.merchant_pages.link_fields import (
    SUGGESTED,
    read_amounts,
    read_body,
    read_texts,
)
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.errors import CommandError, PriceUnavailable, TooLittle, TooMuch
from btcpay.web.errors import STATUS
from btcpay.web.pages import languages
from btcpay.web.pages.forms import error_message
from btcpay.web.pages.languages import gettext
from storage.models import PaymentLink
from storage.queries import links


def show_form(
    visit: Visit,
    status: int = 200,
    link: PaymentLink | None = None,
    **values: Any,
) -> Response:
    """Shows the form for a new link, or for the existing `link`, with the entered values.

    `status` is the HTTP status. `values` are further values for the template:

    - `entries`: the texts to show in the fields, in place of the entered ones.
    - `field_errors`: the error message about each invalid field, by the field's name.
    - `problem`: a message that is about no single field.
    """
    defaults = {"entries": visit.form, "field_errors": {}}
    return visit.page(
        "new_link.html",
        status,
        link=link,
        suggested=SUGGESTED,
        how=HOW,
        **defaults | values,
    )


def show_edit(visit: Visit, id: str) -> Response:
    """Shows the form with the stored values of a link.

    Amounts have the format of the page's language.
    """
    link = visit.get_or_404(links.ANY_BY_ID, "lnk", id)
    texts = {name: getattr(link, name) or "" for name in (*TEXTS, *ASKS)}
    language = languages.current_language()
    for name, amount in _stored_amounts(link).items():
        texts[name] = formats.plain(amount, link.currency, language)
    return show_form(visit, link=link, entries=texts)


def _stored_amounts(link: PaymentLink) -> dict[str, Decimal]:
    """Returns the stored amounts of a link that the form can change, by its field."""
    stored = {
        "goal": link.goal,
        "min_amount": link.min_amount,
        "max_amount": link.max_amount,
    }
    # A link may have fewer suggested amounts than the form has fields for them.
    suggested = (link.suggested or "").split()
    stored |= zip(SUGGESTED, suggested, strict=False)
    return {name: Decimal(text) for name, text in stored.items() if text}


def make(visit: Visit, id: str = "") -> Response:
    """Creates a link; if `id` is given, changes the link with this id.

    Redirects (303) to the link, or shows an invalid form again. If the browser sends the
    same form twice, only one link is created.
    """
    link = None
    if id:
        link = visit.get_or_404(links.ANY_BY_ID, "lnk", id)
    texts, text_errors = read_texts(visit.form)
    amounts, field_errors = read_amounts(visit, link, texts)
    field_errors |= text_errors
    if field_errors:
        return show_form(visit, 400, link, field_errors=field_errors)
    body = read_body(visit.form, texts, amounts)
    try:
        if link is None:
            outcome = "made"
            id = _create(visit, body)
        else:
            outcome = "changed"
            _update(visit, link, body)
    except TooLittle as refusal:
        field_errors = _too_small(amounts, refusal)
        return show_form(visit, 400, link, field_errors=field_errors)
    except CommandError:
        message = gettext(
            "Each suggested amount must be within the limits, and there only once."
        )
        return show_form(visit, 400, link, field_errors={SUGGESTED[0]: message})
    except (TooMuch, PriceUnavailable) as error:
        return show_form(visit, STATUS[error.code], link, problem=error_message(error))
    return visit.redirect(f"/links/{id}", done=outcome)


def _too_small(amounts: Mapping[str, Decimal], refusal: TooLittle) -> dict[str, str]:
    """Returns the message about each amount that no wallet can send, by field.

    The goal is no amount that a payer sends.
    """
    message = error_message(refusal)
    return {
        name: message
        for name, amount in amounts.items()
        if name != "goal" and amount < refusal.least
    }


def _create(visit: Visit, body: dict[str, Any]) -> str:
    """Creates the link, unless this form has created it already, and returns its id.

    The amounts of the link are in the currency of the price. The price also determines
    which amounts are too small to send.
    """
    service = visit.service
    price = live_price(service.prices, visit.now, visit.currency)
    with visit.create_once("lnk", links.ANY_BY_ID) as (id, exists):
        if not exists:
            new_link(
                service.db,
                visit.now,
                visit.merchant_id,
                fields=body | {"id": id},
                price=price,
                dust_limit_sats=visit.dust_limit_sats,
            )
    return id


def _update(visit: Visit, link: PaymentLink, body: dict[str, Any]) -> None:
    """Changes the link.

    Needs an exchange rate only if amounts have changed. So texts can be changed while
    no rate is available.
    """
    stored = _stored_amounts(link)
    suggested = [stored[name] for name in SUGGESTED if name in stored]
    has_same_minimum = body.get("min_amount_usd") == stored.get("min_amount")
    has_same_maximum = body.get("max_amount_usd") == stored.get("max_amount")
    has_same_suggestions = body["suggested"] == suggested
    price = None
    if not (has_same_minimum and has_same_maximum and has_same_suggestions):
        price = live_price(visit.service.prices, visit.now, link.currency)
    edit(visit.service.db, link, body, price, visit.dust_limit_sats)
