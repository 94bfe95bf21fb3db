"""The price of a bitcoin from one ticker, and the agreement of several."""

import re
from collections.abc import Sequence
from decimal import Context, Decimal, InvalidOperation
from statistics import median
from typing import Any

from btcpay.http import http_client
from btcpay.settings.parsers import PriceSource

SOURCE_TIMEOUT_S = 3
PROXIED_TIMEOUT_S = 10  # Tor takes seconds for a new circuit
_TICKER = http_client.Response(http_client.parse_json, max_bytes=1_000_000)
MAX_DEVIATION = Decimal("0.05")  # from the median: a source further off is broken or a liar
_EXACT = Context(prec=28)


def resolve_pointer(document: Any, pointer: str) -> Any:
    """The value at an RFC 6901 pointer. Raises LookupError when there is none."""
    value = document
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            if not re.fullmatch("0|[1-9][0-9]{0,8}", name):
                raise LookupError(pointer)
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value[name]
        else:
            raise LookupError(pointer)
    return value


def to_price(value: Any) -> Decimal:
    """A JSON number or numeric string above 0, as Decimal. Raises ValueError for anything else."""
    numeric = isinstance(value, (int, Decimal)) and not isinstance(value, bool)
    if not numeric and not (
        isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", value)
    ):
        raise ValueError("no number there")
    try:
        price_usd = _EXACT.create_decimal(value)
    except (InvalidOperation, ArithmeticError) as error:
        raise ValueError("no usable number there") from error
    if not (price_usd.is_finite() and Decimal("1e-8") < price_usd < Decimal("1e12")):
        raise ValueError("no plausible price there")
    return price_usd


def timeout_s_of(proxy: str) -> int:
    """Seconds that a source has for its answer; `proxy` is the setting."""
    return PROXIED_TIMEOUT_S if proxy else SOURCE_TIMEOUT_S


def read_price(
    session: http_client.Session,
    source: PriceSource,
    on_headers: http_client.OnHeaders,
    timeout_s: int,
) -> Decimal:
    """One source's price; `on_headers` gets the headers of any answer.

    Raises FetchError; LookupError or ValueError when the answer has no price in it.
    """
    ticker = session.get(source.url, timeout_s, _TICKER, on_headers)
    return to_price(resolve_pointer(ticker, source.pointer))


def agree(prices: Sequence[Decimal], quorum: int) -> Decimal | None:
    """The median of the prices within 5 % of all prices' median; None when fewer than `quorum`."""
    if not prices:
        return None
    centre = median(prices)
    close = [price for price in prices if abs(price - centre) <= centre * MAX_DEVIATION]
    return median(close) if len(close) >= quorum else None
