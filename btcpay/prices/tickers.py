"""The price of a bitcoin from one ticker, and the agreement of several."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Context, Decimal
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from btcpay.http import http_client
from btcpay.http.clock_skew import time_sent
from btcpay.settings.parsers import PriceSource
from btcpay.values.hosts import is_here

SOURCE_TIMEOUT_S = 3
PROXIED_TIMEOUT_S = 10  # Tor takes seconds for a new circuit
_TICKER = http_client.Response(http_client.parse_json, max_bytes=1_000_000)
# From the median. A price that is further off is broken or a lie.
MAX_DEVIATION = Decimal("0.05")
_EXACT = Context(prec=50)  # digits, as many as the amounts that are computed with it
MIN_PRICE = Decimal("1e-8")
MAX_PRICE = Decimal("1e12")
# A number as JSON writes it, and also with leading zeros. No ticker needs more characters.
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_MAX_CHARACTERS = 100


def resolve_pointer(document: Any, pointer: str) -> Any:
    """The value at an RFC 6901 pointer. Raises LookupError if there is none."""
    value = document
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and re.fullmatch("0|[1-9][0-9]{0,8}", name):
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value[name]
        else:
            raise LookupError(pointer)
    return value


def parse_price(value: Any) -> Decimal:
    """A price above 0 from a JSON number or a text of one. Raises ValueError for anything else.

    It has no positive exponent, and is rounded to 50 digits.
    """
    if isinstance(value, str):
        is_number = len(value) <= _MAX_CHARACTERS and bool(_NUMBER.fullmatch(value))
    else:
        is_number = type(value) in (int, Decimal)
    if not is_number:
        raise ValueError("no number there")
    price = Decimal(value)
    if not price.is_finite() or not MIN_PRICE < price < MAX_PRICE:
        raise ValueError("no plausible price there")
    return Decimal(f"{_EXACT.create_decimal(price):f}")


def fetch_price(
    session: http_client.Session,
    source: PriceSource,
    on_time: Callable[[datetime], None],
) -> Decimal:
    """One source's price; `on_time` gets the time of the answer, unless this machine sent it.

    Raises FetchError, or LookupError or ValueError if the answer has no price in it.
    """
    is_remote = not is_here(urlsplit(source.url).hostname)

    def on_headers(headers: Mapping[str, str]) -> None:
        sent_at = time_sent(headers)
        if sent_at and is_remote:
            on_time(sent_at)

    timeout_s = SOURCE_TIMEOUT_S
    if session.proxy:
        timeout_s = PROXIED_TIMEOUT_S
    ticker = session.get(source.url, timeout_s, _TICKER, on_headers)
    return parse_price(resolve_pointer(ticker, source.pointer))


def agreed_price(prices: Sequence[Decimal], quorum: int) -> Decimal | None:
    """The median of the prices within 5 % of all prices' median; None if fewer than `quorum`."""
    if not prices:
        return None
    centre = median(prices)
    close = [price for price in prices if abs(price - centre) <= centre * MAX_DEVIATION]
    if len(close) < quorum:
        return None
    return median(close)
