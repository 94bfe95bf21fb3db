"""Validates the business details on receipts: address, tax number and tax rate.

The functions read no database and no files.
"""

import re
from decimal import Decimal

from btcpay.values.amounts import NotAnAmount, with_ascii_digits
from btcpay.values.errors import CommandError
from btcpay.values.texts import lines_of

MAX_ADDRESS_CHARACTERS = 300
MAX_ADDRESS_LINES = 6
# U+066A is the Arabic percent sign.
_PERCENT = re.compile(r"([0-9]{1,3})(?:[.,]([0-9]{1,3}))? ?[%\u066a]?")
_LONGEST_PERCENT = 20  # the maximum length of the text, before its digits are converted


def checked_business_address(text: str) -> str | None:
    """Returns the address without its empty lines; None if all lines are empty.

    Raises CommandError if the address has too many characters or lines.
    """
    typed = lines_of("business address", text, MAX_ADDRESS_CHARACTERS)
    lines = [line for line in typed.split("\n") if line]
    if len(lines) > MAX_ADDRESS_LINES:
        raise CommandError(
            f"the business address has more than {MAX_ADDRESS_LINES} lines"
        )
    return "\n".join(lines) or None


def checked_tax_percent(text: str) -> str | None:
    """Returns the tax rate in percent as text, such as `7.7` for the text `7,70 %`.

    Returns None for an empty text. Raises CommandError if the text is not a number with
    up to three decimals, if the rate is 0, or if it is above 100.
    """
    if not text.strip():
        return None
    percent = _percent_of(text)
    if not 0 < percent <= 100:
        raise CommandError(
            "the tax must be a percentage above 0 and up to 100, such as 19 or 7.7"
        )
    return f"{percent.normalize():f}"


def _percent_of(text: str) -> Decimal:
    """Returns the number in the text; 0 if it is no number."""
    if len(text) > _LONGEST_PERCENT:
        return Decimal(0)
    try:
        match = _PERCENT.fullmatch(with_ascii_digits(text))
    except NotAnAmount:
        match = None
    if match is None:
        return Decimal(0)
    return Decimal(f"{match[1]}.{match[2] or 0}")
