"""The amount that somebody typed, in a currency: what it says, or a sentence about what to type."""

import re
import unicodedata
from decimal import Decimal

from btcpay.languages import formats
from btcpay.values.currencies import places_of, rounded
from btcpay.web.pages import languages
from btcpay.web.pages.languages import gettext

# Three decimals only after a zero: `1.000` and `1,000` are a dollar to some, a thousand to others.
# Where there are three, they stand after a point.
_AMOUNT = re.compile(
    r"(0|[0-9]{1,9})(?:\.([0-9]{1,2}|[0-9]{4,9}|(?<=^0\.)[0-9]{3})|,([0-9]{1,2}))?"
)
_THOUSANDTHS = re.compile(r"(0|[0-9]{1,9})(?:\.([0-9]{1,3})|,([0-9]{1,2}))?")
_WHOLE = re.compile(r"([0-9]{1,11})()()")


_EXAMPLES = {0: Decimal(1990), 2: Decimal("19.90"), 3: Decimal("19.900")}


class AmountRefused(Exception):
    """Why, in the language of the request."""


def read_amount(text: str, currency: str, low: Decimal, high: Decimal) -> Decimal:
    """From `low` to `high`, and above 0. Raises AmountRefused."""
    language, amount = languages.current(), parse_amount(text, currency)
    if amount is None:
        other = formats.plain(_EXAMPLES[places_of(currency)], currency, language)
        raise AmountRefused(
            gettext("Enter an amount such as %(one)s or %(other)s.", one="25", other=other)
        )
    if not (amount > 0 and low <= amount <= high):
        least, most = (formats.money(bound, currency, language) for bound in (low, high))
        if low:
            message = gettext("Enter an amount from %(low)s to %(high)s.", low=least, high=most)
        else:
            message = gettext("Enter an amount above 0 and up to %(high)s.", high=most)
        raise AmountRefused(message)
    return amount


def parse_amount(text: str, currency: str) -> Decimal | None:
    """`25`, `$19.90`, `19,90`, `۱۹٫۹۰`; None for anything else, and for too many decimals."""
    plain = unicodedata.normalize("NFKC", text).strip().removeprefix("$").lstrip()
    form = {0: _WHOLE, 2: _AMOUNT, 3: _THOUSANDTHS}[places_of(currency)]
    match = form.fullmatch("".join(map(_in_ascii, plain)))
    if not match:
        return None
    cents = match[2] or match[3]
    amount = Decimal(f"{match[1]}.{cents}" if cents else match[1])
    return amount if currency == "USD" or amount == rounded(amount, currency) else None


def _in_ascii(sign: str) -> str:
    """A digit as it is in ASCII, the decimal mark of Arabic and Persian as a point."""
    return "." if sign == "\u066b" else str(unicodedata.decimal(sign, sign))
