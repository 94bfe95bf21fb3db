"""Validates what receipts say about a merchant's business: address, tax number, tax. Pure."""

import re
from decimal import Decimal

from btcpay.values.amounts import with_ascii_digits
from btcpay.values.errors import CommandError
from btcpay.values.texts import lines_of

MAX_ADDRESS_CHARACTERS = 300
MAX_ADDRESS_LINES = 6
# U+066A is the Arabic percent sign.
_PERCENT = re.compile(r"([0-9]{1,3})(?:[.,]([0-9]{1,3}))? ?[%\u066a]?")
_LONGEST_PERCENT = 20  # characters, before they are normalised


def checked_business_address(text: str) -> str | None:
    """Returns the lines that are not empty; None if there is none.

    Raises CommandError if they are too long or too many.
    """
    typed = lines_of("business address", text, MAX_ADDRESS_CHARACTERS)
    lines = [line for line in typed.split("\n") if line]
    if len(lines) > MAX_ADDRESS_LINES:
        raise CommandError(
            f"the business address has more than {MAX_ADDRESS_LINES} lines"
        )
    return "\n".join(lines) or None


def checked_tax_percent(text: str) -> str | None:
    """Returns the rate as a decimal text, such as `7.7` for `7,70 %`; None for no text.

    Raises CommandError if it is not above 0 and at most 100, with up to three decimals.
    """
    if not text.strip():
        return None
    match = None
    if len(text) <= _LONGEST_PERCENT:
        match = _PERCENT.fullmatch(with_ascii_digits(text))
    percent = Decimal(0)
    if match:
        percent = Decimal(f"{match[1]}.{match[2] or 0}")
    if not 0 < percent <= 100:
        raise CommandError(
            "the tax must be a percentage above 0 and up to 100, such as 19 or 7.7"
        )
    return f"{percent.normalize():f}"
