"""The amount that a visitor typed, in USD: digits, and a point or a comma before the cents.

The digits may be those of any script. A dollar sign before them does not matter: the field shows
one.
"""

import re
import unicodedata
from decimal import Decimal

# Three decimals only after a zero: `1.000` and `1,000` are a dollar to some, a thousand to others.
_AMOUNT = re.compile(
    r"(0|[0-9]{1,9})(?:\.([0-9]{1,2}|[0-9]{4,9}|(?<=^0\.)[0-9]{3})|,([0-9]{1,2}))?"
)


def parse_usd(text: str) -> Decimal | None:
    """`25`, `19.90`, `19,90`, `۱۹٫۹۰`; None for anything else."""
    plain = unicodedata.normalize("NFKC", text).strip().removeprefix("$").lstrip()
    match = _AMOUNT.fullmatch("".join(map(_in_ascii, plain)))
    if not match:
        return None
    cents = match[2] or match[3]
    return Decimal(f"{match[1]}.{cents}" if cents else match[1])


def _in_ascii(sign: str) -> str:
    """A digit as it is in ASCII, the decimal mark of Arabic and Persian as a point."""
    return "." if sign == "\u066b" else str(unicodedata.decimal(sign, sign))
