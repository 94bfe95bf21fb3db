"""The amount that somebody typed, in USD: what it says, or a sentence about what to type."""

import re
import unicodedata
from decimal import Decimal

from btcpay.languages import formats
from btcpay.web.pages import languages
from btcpay.web.pages.languages import gettext

# Three decimals only after a zero: `1.000` and `1,000` are a dollar to some, a thousand to others.
_AMOUNT = re.compile(
    r"(0|[0-9]{1,9})(?:\.([0-9]{1,2}|[0-9]{4,9}|(?<=^0\.)[0-9]{3})|,([0-9]{1,2}))?"
)


class AmountRefused(Exception):
    """Why, in the language of the request."""


def read_usd(text: str, low: Decimal, high: Decimal) -> Decimal:
    """From `low` to `high`, and above 0. Raises AmountRefused."""
    language, amount_usd = languages.current(), parse_usd(text)
    if amount_usd is None:
        examples = {"one": "25", "other": formats.cents(Decimal("19.90"), language)}
        raise AmountRefused(gettext("Enter an amount such as %(one)s or %(other)s.", **examples))
    if not (amount_usd > 0 and low <= amount_usd <= high):
        least, most = formats.usd(low, language), formats.usd(high, language)
        if low:
            message = gettext("Enter an amount from %(low)s to %(high)s.", low=least, high=most)
        else:
            message = gettext("Enter an amount above 0 and up to %(high)s.", high=most)
        raise AmountRefused(message)
    return amount_usd


def parse_usd(text: str) -> Decimal | None:
    """`25`, `$19.90`, `19,90`, `۱۹٫۹۰`; None for anything else."""
    plain = unicodedata.normalize("NFKC", text).strip().removeprefix("$").lstrip()
    match = _AMOUNT.fullmatch("".join(map(_in_ascii, plain)))
    if not match:
        return None
    cents = match[2] or match[3]
    return Decimal(f"{match[1]}.{cents}" if cents else match[1])


def _in_ascii(sign: str) -> str:
    """A digit as it is in ASCII, the decimal mark of Arabic and Persian as a point."""
    return "." if sign == "\u066b" else str(unicodedata.decimal(sign, sign))
