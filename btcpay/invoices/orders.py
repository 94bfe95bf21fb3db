"""An order: a validated request for an invoice, before its amount in bitcoin is known."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from btcpay.merchants.branding import checked_url
from btcpay.settings.mail_settings import checked_address
from btcpay.values.errors import CommandError
from btcpay.values.texts import check_texts, checked_line

MS_PER_HOUR = 3_600_000
USD = "USD"
# An order in bitcoin needs no exchange rate for its satoshis, only for the dollars that its page
# shows.
BTC = "BTC"
MAX_SHOWN = 100  # characters that an error shows of a refused text


class Order(NamedTuple):
    """A validated request for an invoice.

    `life` is the time until the invoice expires; None means never. `amount` is in
    `currency`. If `currency` is None, as for an order of the API, the amount is in
    dollars, and pages show its value in `shown_currency` beside it. `details` are
    columns of the invoice that are stored unchanged.

    `high` is the highest amount that a person could have entered; None if a program
    chose the amount. `dust_limit_sats` is the minimum that a wallet can send to the
    merchant's account. A lower amount is refused only if a person chose it.
    """

    merchant_id: int
    amount: Decimal
    life: timedelta | None
    details: Mapping[str, Any]
    currency: str | None = None
    high: Decimal | None = None
    dust_limit_sats: int = 0
    shown_currency: str = USD


def order_of(
    merchant_id: int,
    body: Mapping[str, Any],
    currency: str | None = None,
    high: Decimal | None = None,
    dust_limit_sats: int = 0,
    shown_currency: str = USD,
) -> Order:
    """Returns an order from a validated body of create-invoice, or from a form's fields.

    `currency` is that of the field `amount` in `body`; None if `body` has the field
    `amount_usd` instead, as for create-invoice. A form may have further columns of the
    invoice in `body`. The other parameters are fields of Order, which explains them.

    Raises CommandError for a reference or a return_url that pages must not show. If a
    person has entered the values (`high` is given), also raises CommandError for a
    description with invisible characters, and for an e-mail address to which no mail can
    be sent.
    """
    details = dict(body)
    is_from_person = high is not None
    if is_from_person:
        details = check_texts(body)
    email = details.get("customer_email")
    reference = details.get("reference")
    return_url = details.get("return_url")
    if is_from_person and email is not None:
        details["customer_email"] = checked_email(email)
    if reference is not None:
        details["reference"] = checked_line("reference", reference)
    if return_url is not None:
        details["return_url"] = checked_url(return_url)
    amount_field = "amount_usd"
    if currency:
        amount_field = "amount"
    return Order(
        merchant_id=merchant_id,
        amount=details.pop(amount_field),
        life=_life_of(details.pop("expires_in_hours", None)),
        details=details,
        currency=currency,
        high=high,
        dust_limit_sats=dust_limit_sats,
        shown_currency=shown_currency,
    )


def _life_of(hours: Decimal | None) -> timedelta | None:
    if hours is None:
        return None
    return timedelta(milliseconds=int(hours * MS_PER_HOUR))


def checked_email(text: str) -> str:
    """Returns a customer's e-mail address without surrounding blanks.

    Raises CommandError if it is no valid address.
    """
    email = text.strip()
    try:
        checked_address(email)
    except ValueError as error:
        raise CommandError(f"{email[:MAX_SHOWN]!a} is not {error}") from None
    return email
