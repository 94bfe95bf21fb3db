"""An amount in USD that a merchant typed: what it says, or a sentence about what to type."""

from decimal import Decimal

from btcpay.checkout.amounts import parse_usd
from btcpay.languages import formats
from btcpay.web.pages import languages
from btcpay.web.pages.languages import gettext
from schemas.requests import MAX_USD


class AmountRefused(Exception):
    """The sentence, in the language of the request."""


def typed_usd(text: str) -> Decimal:
    """Above 0 and at most MAX_USD. Raises AmountRefused."""
    language = languages.current()
    amount_usd = parse_usd(text)
    if amount_usd is None:
        examples = {"one": "25", "other": formats.cents(Decimal("19.90"), language)}
        raise AmountRefused(gettext("Enter an amount such as %(one)s or %(other)s.", **examples))
    if not 0 < amount_usd <= MAX_USD:
        high = formats.usd(Decimal(MAX_USD), language)
        raise AmountRefused(gettext("Enter an amount above 0 and up to %(high)s.", high=high))
    return amount_usd
