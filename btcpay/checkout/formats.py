"""Numbers and times as a language writes them, except amounts in BTC.

Those have a point in every language, since they are copied into wallets.
"""

from datetime import UTC, timedelta
from decimal import Decimal

from babel.dates import format_datetime, format_timedelta
from babel.numbers import format_decimal

from btcpay.money import CENT
from btcpay.times import from_ms


def whole(number: int, language: str) -> str:
    """A whole number with the language's groups: `41,667`."""
    return format_decimal(number, "#,##0", language)


def usd(amount_usd: Decimal, language: str) -> str:
    """Dollars to the nearest cent, half to even: `1,234.50 USD`; under a cent it says so."""
    if 0 < amount_usd < CENT:
        return f"< {usd(CENT, language)}"
    return f"{cents(amount_usd, language)} USD"


def cents(amount_usd: Decimal, language: str) -> str:
    """The number alone, to the nearest cent: `19,90` in German."""
    return format_decimal(amount_usd, "#,##0.00", language)


def moment(at_ms: int, language: str) -> str:
    """A stored time to the second, in UTC and saying so."""
    return f"{format_datetime(from_ms(at_ms), 'medium', UTC, language)} UTC"


def ago(elapsed_ms: int, language: str) -> str:
    """How long ago something was, at least a second: `12 seconds ago`."""
    elapsed = timedelta(seconds=max(1, elapsed_ms // 1000))
    return format_timedelta(-elapsed, add_direction=True, threshold=1, locale=language)


def groups(text: str, size: int = 4) -> list[str]:
    """An address in groups that people can compare; joined, they are the address."""
    return [text[start : start + size] for start in range(0, len(text), size)]
