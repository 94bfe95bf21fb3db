"""What forms share: a text of their own each, and the reason why one made nothing."""

from decimal import Decimal

from btcpay.languages import formats
from btcpay.values.errors import PriceUnavailable, TooMuch
from btcpay.values.ids import ID_CHARACTERS, random_base62
from btcpay.web.pages import languages
from btcpay.web.pages.languages import gettext
from schemas.requests import MAX_USD


def new_form() -> str:
    """A random text: each time that a form is shown has its own."""
    return random_base62(ID_CHARACTERS)


def said(refused: Exception) -> str:
    """What a form says of what it could not make, in the language of the request."""
    if isinstance(refused, PriceUnavailable):
        return gettext(
            "The exchange rate is not available right now, so nothing was created."
            " Please try again in a minute."
        )
    if isinstance(refused, TooMuch):
        high = formats.money(Decimal(MAX_USD), "USD", languages.current())
        return gettext("Enter an amount above 0 and up to %(high)s.", high=high)
    return str(refused)
