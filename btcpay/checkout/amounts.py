"""The amount that a visitor typed, in USD: digits, and a point or a comma before the cents.

A dollar sign before it does not matter: the field shows one.
"""

import re
import unicodedata
from decimal import Decimal

# Three decimals only after a zero: `1.000` and `1,000` are a dollar to some, a thousand to others.
_AMOUNT = re.compile(
    r"(0|[0-9]{1,9})(?:\.([0-9]{1,2}|[0-9]{4,9}|(?<=^0\.)[0-9]{3})|,([0-9]{1,2}))?"
)


def parse_usd(text: str) -> Decimal | None:
    """`25`, `19.90`, `19,90`, with full-width digits too; None for anything else."""
    plain = unicodedata.normalize("NFKC", text).strip().removeprefix("$").lstrip()
    match = _AMOUNT.fullmatch(plain)
    if not match:
        return None
    cents = match[2] or match[3]
    return Decimal(f"{match[1]}.{cents}" if cents else match[1])
