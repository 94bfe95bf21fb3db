"""The price of a bitcoin: several sources at once, their median, a quorum, an age limit."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from urllib.parse import urlsplit

from btcpay.http import http_client
from btcpay.http.clock_skew import EPOCH, agreed_ahead, told_time
from btcpay.prices.second_prices import SecondPrices
from btcpay.prices.tickers import agree, ask, timeout_s_of
from btcpay.settings.parsers import PriceSource
from btcpay.settings.settings import Settings
from btcpay.values.errors import PriceUnavailable
from btcpay.values.hosts import is_here

log = logging.getLogger(__name__)

FRESH_S = 30  # how long a price is used without asking again
RETRY_S = 2  # pause after a failure, so that not every request asks a dead source
# The plain monotonic clock stops while a machine is suspended: an old price would seem fresh.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(frozen=True)
class Asked:
    """The outcome of one refresh: a price or None; `at_s` is a time of the monotonic clock."""

    price: Decimal | None
    at_s: float


class Prices:
    """The price as this process knows it. One thread refreshes it; the others wait or do without.

    It is in dollars unless another `currency` is named. `monotonic` answers seconds of a clock that
    never steps. `told` is called after each refresh with whether there was a price. `proxy` is the
    setting. `beside`: the prices in other currencies.
    """

    def __init__(
        self,
        sources: Sequence[PriceSource],
        quorum: int,
        max_age_s: int,
        monotonic: Callable[[], float],
        told: Callable[[bool], None] = lambda good: None,
        proxy: str = "",
        currency: str = "USD",
        beside: SecondPrices | None = None,
    ) -> None:
        self._sources = sources
        self._quorum = quorum
        self._max_age_s = max_age_s
        self._monotonic = monotonic
        self._told = told
        self._currency = currency
        self.beside = beside or SecondPrices(_nothing)
        self._refreshing = threading.Lock()
        self._on_headersing = threading.Lock()
        self._session = http_client.Session(len(sources), proxy)
        self._timeout_s = timeout_s_of(proxy)
        self._good: Asked | None = None
        self._last: Asked | None = None
        # The time since EPOCH when the monotonic clock was 0, as each source last said it.
        self._began: Mapping[PriceSource, timedelta] = {}

    def current(self) -> Decimal:
        """What one bitcoin costs. Raises PriceUnavailable; never waits longer than one refresh."""
        called_s = self._monotonic()
        price = self._known(min(FRESH_S, self._max_age_s))
        if price is not None:
            return price
        if self._refreshing.acquire(blocking=self.known() is None):
            try:
                if self._must_ask(called_s):
                    self._refresh()
            finally:
                self._refreshing.release()
        price = self.known()
        if price is None:
            told = f"the BTC/{self._currency} price is unavailable right now; retry shortly"
            raise PriceUnavailable(told)
        return price

    def current_or_none(self) -> Decimal | None:
        """Like `current`; None when there is no price."""
        try:
            return self.current()
        except PriceUnavailable:
            return None

    def known(self) -> Decimal | None:
        """The price without asking anybody; None when it is none any more."""
        return self._known(self._max_age_s)

    def has_failed(self) -> bool:
        """Whether there was no price when the sources were asked last."""
        return self._last is not None and self._last.price is None

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
        return good.price

    def _must_ask(self, called_s: float) -> bool:
        """Not when another thread asked while we waited for it, or failed a moment ago."""
        last = self._last
        if last is None:
            return True
        rested = last.price is not None or self._monotonic() - last.at_s >= RETRY_S
        return last.at_s < called_s and rested

    def _ask(self, source: PriceSource) -> Decimal | None:
        def on_headers(headers: Mapping[str, str]) -> None:
            told = told_time(headers)
            if told and not is_here(urlsplit(source.url).hostname):
                began = told - EPOCH - timedelta(seconds=self._monotonic())
                with self._on_headersing:
                    self._began = {**self._began, source: began}

        return ask(self._session, source, on_headers, self._timeout_s)

    def _refresh(self) -> None:
        with ThreadPoolExecutor(max_workers=max(1, len(self._sources))) as pool:
            answers = list(pool.map(self._ask, self._sources))
        prices = [price for price in answers if price is not None]
        self._last = Asked(agree(prices, self._quorum), self._monotonic())
        self._told(self._last.price is not None)
        if self._last.price is not None:
            self._good = self._last
            return
        # Without one in dollars nothing can be sold.
        is_usd = self._currency == "USD"
        where = "" if is_usd else f" in {self._currency}"
        counts = len(prices), len(self._sources)
        level = logging.ERROR if is_usd else logging.WARNING
        log.log(level, "no price%s: %d of %d sources answered", where, *counts)


def _nothing(currency: str) -> Prices:
    """Of prices that have nothing beside them: no source, so no price."""
    return Prices((), 1, 1, time.monotonic, currency=currency)


def new_prices(settings: Settings, told: Callable[[bool], None] = lambda good: None) -> Prices:
    """The price as these settings say, on a clock that never steps and runs while we sleep."""

    def second(currency: str) -> Prices:
        sources = [source.of(currency) for source in settings.currency_sources]
        # More than half, as of the dollars' sources.
        return Prices(
            sources, len(sources) // 2 + 1, *clock, proxy=settings.proxy, currency=currency
        )

    clock = settings.price_max_age_s, lambda: time.clock_gettime(_STEADY)
    return Prices(
        settings.price_sources,
        settings.price_quorum,
        *clock,
        told,
        settings.proxy,
        beside=SecondPrices(second),
    )
