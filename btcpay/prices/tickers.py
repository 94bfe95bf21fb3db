"""Fetches the price of a bitcoin from web APIs (tickers), and combines several prices."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Context, Decimal
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from btcpay.http import http_client
from btcpay.http.clock_skew import time_sent
from btcpay.settings.ticker_settings import PriceSource
from btcpay.values.hosts import is_here

SOURCE_TIMEOUT_S = 3
PROXIED_TIMEOUT_S = 10  # Tor takes seconds for a new circuit
_TICKER = http_client.Response(http_client.parse_json, max_bytes=1_000_000)
# Maximum deviation from the median. A price that is further off is wrong or forged.
MAX_DEVIATION = Decimal("0.05")
_EXACT = Context(prec=50)  # digits, as in the computation of amounts
MIN_PRICE = Decimal("1e-8")
MAX_PRICE = Decimal("1e12")
# A non-negative JSON number, which may also have leading zeros.
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_MAX_CHARACTERS = 100


def resolve_pointer(document: Any, pointer: str) -> Any:
    """Returns the value in `document` at a JSON pointer (RFC 6901).

    Raises LookupError if the document has no such value.
    """
    value = document
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        is_index = re.fullmatch("0|[1-9][0-9]{0,8}", name)
        if isinstance(value, list) and is_index:
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value[name]
        else:
            raise LookupError(pointer)
    return value


def parse_price(value: Any) -> Decimal:
    """Converts a JSON number, or a string with a number, to a positive price.

    The result is rounded to 50 digits and has no exponent. Raises ValueError if the
    value is not a number, or not between MIN_PRICE and MAX_PRICE.
    """
    if isinstance(value, str):
        is_number = len(value) <= _MAX_CHARACTERS and bool(_NUMBER.fullmatch(value))
    else:
        is_number = type(value) in (int, Decimal)  # True and False are not numbers here
    if not is_number:
        raise ValueError("no number there")
    price = Decimal(value)
    if not price.is_finite() or not MIN_PRICE < price < MAX_PRICE:
        raise ValueError("no plausible price there")
    rounded_price = _EXACT.create_decimal(price)
    return Decimal(f"{rounded_price:f}")  # without an exponent


def fetch_price(
    session: http_client.Session,
    source: PriceSource,
    on_time: Callable[[datetime], None],
) -> Decimal:
    """Fetches the price from one source.

    `on_time` is called with the time in the response headers, unless there is none, or
    the source runs on this machine. Raises FetchError if the request fails, and
    LookupError or ValueError if the response contains no price.
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
    """Returns the median of the prices, without outliers.

    An outlier is more than 5 % away from the median of all prices. Returns None if
    fewer than `quorum` prices remain.
    """
    if not prices:
        return None
    centre = median(prices)
    max_distance = centre * MAX_DEVIATION
    close_prices = [price for price in prices if abs(price - centre) <= max_distance]
    if len(close_prices) < quorum:
        return None
    return median(close_prices)
