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
MAX_DEVIATION = Decimal(
    "0.05"
)  # from the median: a source further off is broken or a liar
_EXACT = Context(prec=50)  # digits, as many as the amounts that are computed with it
# As JSON writes a number, but leading zeros are read too. No ticker needs more characters.
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_MOST_CHARACTERS = 100


def resolve_pointer(document: Any, pointer: str) -> Any:
    """The value at an RFC 6901 pointer. Raises LookupError when there is none."""
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
    """A JSON number or numeric string above 0, as Decimal. Raises ValueError for anything else.

    It is written without a positive exponent. What has more than 50 digits is rounded to them.
    """
    if isinstance(value, str):
        if len(value) > _MOST_CHARACTERS or not _NUMBER.fullmatch(value):
            raise ValueError("no number there")
    elif type(value) not in (int, Decimal):
        raise ValueError("no number there")
    price_usd = Decimal(value)
    if not (price_usd.is_finite() and Decimal("1e-8") < price_usd < Decimal("1e12")):
        raise ValueError("no plausible price there")
    return Decimal(f"{_EXACT.create_decimal(price_usd):f}")


def fetch_price(
    session: http_client.Session,
    source: PriceSource,
    on_time: Callable[[datetime], None],
) -> Decimal:
    """One source's price; `on_time` gets the time of any answer that is not of this machine.

    Raises FetchError; LookupError or ValueError when the answer has no price in it.
    """

    def on_headers(headers: Mapping[str, str]) -> None:
        if (sent_at := time_sent(headers)) and not is_here(
            urlsplit(source.url).hostname
        ):
            on_time(sent_at)

    timeout_s = PROXIED_TIMEOUT_S if session.proxy else SOURCE_TIMEOUT_S
    ticker = session.get(source.url, timeout_s, _TICKER, on_headers)
    return parse_price(resolve_pointer(ticker, source.pointer))


def agreed_price(prices: Sequence[Decimal], quorum: int) -> Decimal | None:
    """The median of the prices within 5 % of all prices' median; None when fewer than `quorum`."""
    if not prices:
        return None
    centre = median(prices)
    close = [price for price in prices if abs(price - centre) <= centre * MAX_DEVIATION]
    if len(close) >= quorum:
        return median(close)
    return None
