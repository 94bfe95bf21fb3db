"""The BTC/USD price: several sources at once, their median, a quorum, an age limit."""

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from urllib.parse import urlsplit

from btcpay import http_client
from btcpay.clock_skew import EPOCH, agreed_ahead, has_our_clock, told_time
from btcpay.errors import PriceUnavailable
from btcpay.setting_parsers import PriceSource
from btcpay.settings import Settings

log = logging.getLogger(__name__)

SOURCE_TIMEOUT_S = 3
PROXIED_TIMEOUT_S = 10  # Tor takes seconds for a new circuit
_TICKER = http_client.Wanted(http_client.parse_json, max_bytes=1_000_000)
MAX_DEVIATION = Decimal("0.05")  # from the median: a source further off is broken or a liar
FRESH_S = 30  # how long a price is used without asking again
RETRY_S = 2  # pause after a failure, so that not every request asks a dead source
_EXACT = Context(prec=28)
# The plain monotonic clock stops while a machine is suspended: an old price would seem fresh.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(frozen=True)
class Asked:
    """The outcome of one refresh: a price or None; `at_s` is a time of the monotonic clock."""

    price_usd: Decimal | None
    at_s: float


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
    """How long a source has for its answer, through this proxy, or "" for none."""
    return PROXIED_TIMEOUT_S if proxy else SOURCE_TIMEOUT_S


def read_price(
    session: http_client.Session,
    source: PriceSource,
    hear: http_client.Hear = lambda _headers: None,
    timeout_s: int = SOURCE_TIMEOUT_S,
) -> Decimal:
    """One source's price; `hear` gets the headers of any answer.

    Raises FetchError; LookupError or ValueError when the answer has no price in it.
    """
    ticker = session.get(source.url, timeout_s, _TICKER, hear)
    return to_price(resolve_pointer(ticker, source.pointer))


def ask(
    session: http_client.Session,
    source: PriceSource,
    hear: http_client.Hear = lambda _headers: None,
    timeout_s: int = SOURCE_TIMEOUT_S,
) -> Decimal | None:
    """One source's price; None, with a line in the log, when it gives none."""
    try:
        return read_price(session, source, hear, timeout_s)
    except (http_client.FetchError, LookupError, ValueError) as error:
        # The host alone: a URL may carry a key.
        host = urlsplit(source.url).hostname
        log.warning("price source %s: %s", host, str(error) or type(error).__name__)
        return None


def median(prices: Sequence[Decimal]) -> Decimal:
    """The middle price of a non-empty sequence, or the mean of the middle two."""
    ordered = sorted(prices)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def agree(prices: Sequence[Decimal], quorum: int) -> Decimal | None:
    """The median of the prices within 5 % of all prices' median; None when fewer than `quorum`."""
    if not prices:
        return None
    centre = median(prices)
    close = [price for price in prices if abs(price - centre) <= centre * MAX_DEVIATION]
    return median(close) if len(close) >= quorum else None


class Prices:
    """The price as this process knows it. One thread refreshes it; the others wait or do without.

    `monotonic` answers seconds of a clock that never steps. `told` is called after each refresh
    with whether there was a price. `proxy` is the setting.
    """

    def __init__(
        self,
        sources: Sequence[PriceSource],
        quorum: int,
        max_age_s: int,
        monotonic: Callable[[], float],
        told: Callable[[bool], None] = lambda good: None,
        proxy: str = "",
    ) -> None:
        self._sources = sources
        self._quorum = quorum
        self._max_age_s = max_age_s
        self._monotonic = monotonic
        self._told = told
        self._refreshing = threading.Lock()
        self._hearing = threading.Lock()
        self._session = http_client.Session(len(sources), proxy)
        self._timeout_s = timeout_s_of(proxy)
        self._good: Asked | None = None
        self._last: Asked | None = None
        # The time since EPOCH when the monotonic clock was 0, as each source last said it.
        self._began: Mapping[PriceSource, timedelta] = {}

    def current(self) -> Decimal:
        """USD for one bitcoin. Raises PriceUnavailable; never waits longer than one refresh."""
        called_s = self._monotonic()
        price_usd = self._known(min(FRESH_S, self._max_age_s))
        if price_usd is not None:
            return price_usd
        if self._refreshing.acquire(blocking=self._known(self._max_age_s) is None):
            try:
                if self._must_ask(called_s):
                    self._refresh()
            finally:
                self._refreshing.release()
        price_usd = self._known(self._max_age_s)
        if price_usd is None:
            raise PriceUnavailable("the BTC/USD price is unavailable right now; retry shortly")
        return price_usd

    def current_or_none(self) -> Decimal | None:
        """Like `current`; None when there is no price."""
        try:
            return self.current()
        except PriceUnavailable:
            return None

    def good_for_s(self) -> float:
        """How much longer the price that is known is one; 0 without any."""
        good = self._good
        return 0 if good is None else max(0, good.at_s + self._max_age_s - self._monotonic())

    def clock_ahead(self, now: datetime) -> timedelta:
        """How far `now` is ahead, if more than half of the sources say so; else zero.

        Their time is carried on by the monotonic clock, so that a step since then is noticed.
        """
        running = now - EPOCH - timedelta(seconds=self._monotonic())
        aheads = [running - began for began in self._began.values()]
        return agreed_ahead(aheads, len(self._sources))

    def _known(self, age_s: int) -> Decimal | None:
        good = self._good
        if good is None or self._monotonic() - good.at_s >= age_s:
            return None
        return good.price_usd

    def _must_ask(self, called_s: float) -> bool:
        """Not when another thread asked while we waited for it, or failed a moment ago."""
        last = self._last
        if last is None:
            return True
        rested = last.price_usd is not None or self._monotonic() - last.at_s >= RETRY_S
        return last.at_s < called_s and rested

    def _ask(self, source: PriceSource) -> Decimal | None:
        def hear(headers: Mapping[str, str]) -> None:
            told = told_time(headers)
            if told and not has_our_clock(source.url):
                began = told - EPOCH - timedelta(seconds=self._monotonic())
                with self._hearing:
                    self._began = {**self._began, source: began}

        return ask(self._session, source, hear, self._timeout_s)

    def _refresh(self) -> None:
        with ThreadPoolExecutor(max_workers=max(1, len(self._sources))) as pool:
            answers = list(pool.map(self._ask, self._sources))
        prices = [price_usd for price_usd in answers if price_usd is not None]
        self._last = Asked(agree(prices, self._quorum), self._monotonic())
        self._told(self._last.price_usd is not None)
        if self._last.price_usd is None:
            log.error("no price: %d of %d sources answered", len(prices), len(self._sources))
        else:
            self._good = self._last


def new_prices(settings: Settings, told: Callable[[bool], None] = lambda good: None) -> Prices:
    """The price as these settings say, on a clock that never steps and runs while we sleep."""
    return Prices(
        settings.price_sources,
        settings.price_quorum,
        settings.price_max_age_s,
        lambda: time.clock_gettime(_STEADY),
        told,
        settings.proxy,
    )
