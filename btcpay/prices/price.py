"""The price of a bitcoin: the median of several sources, cached for a limited time."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

from btcpay.http import http_client
from btcpay.http.clock_skew import agreed_time_ahead
from btcpay.http.deadline import run_in_thread
from btcpay.prices.tickers import agreed_price, fetch_price
from btcpay.settings.settings import Settings
from btcpay.settings.ticker_settings import PriceSource
from btcpay.values.errors import FetchError, PriceUnavailable

log = logging.getLogger(__name__)

FRESH_S = 30  # a price younger than this is not refreshed
RETRY_S = 2  # pause after a failure, so that not every request calls a dead source
# Limits the threads that may wait for another thread's refresh. Together with the threads that wait
# for the database they are fewer than the web server has, so that some are free for requests.
_WAITERS = threading.Semaphore(20)
# CLOCK_MONOTONIC stops while a machine is suspended, so that an old price would seem fresh.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_monotonic_s = partial(time.clock_gettime, _CLOCK)


class _CachedPrice(NamedTuple):
    """The price of one bitcoin, and the monotonic time of its refresh in seconds."""

    price: Decimal
    refreshed_s: float


@dataclass(eq=False)
class Rate:
    """The price of a bitcoin in one currency, cached in this process.

    `quorum`: the number of sources that must agree.
    `max_age_s`: the seconds for which a price may be used.
    `monotonic`: returns seconds, like Python's `time.monotonic`.
    `on_refresh`: called after each refresh, with True if enough sources agreed on a
    price.
    `proxy`: the URL of a proxy, or "".

    Only one refresh runs at a time.
    """

    currency: str
    sources: Sequence[PriceSource]
    quorum: int
    max_age_s: int
    monotonic: Callable[[], float]
    on_refresh: Callable[[bool], None] = lambda is_good: None
    proxy: str = ""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        connections = max(1, len(self.sources))
        self._session = http_client.Session(connections, self.proxy)
        self._cached: _CachedPrice | None = None
        # The monotonic time when the last refresh failed, None if it succeeded.
        self._failed_s: float | None = None
        self._refresh_future: Future[None] | None = None
        # What each source's clock showed when our monotonic clock was 0, as far as its last
        # response tells.
        self._monotonic_zero_at: Mapping[PriceSource, datetime] = {}

    def current_price(self) -> Decimal:
        """Returns the price of one bitcoin. Waits for one refresh at most.

        Raises PriceUnavailable if there is no valid price.
        """
        price = self.current_price_or_none()
        if price is None:
            raise PriceUnavailable(
                f"the BTC/{self.currency} price is unavailable right now; retry shortly"
            )
        return price

    def current_price_or_none(self) -> Decimal | None:
        """Returns the price of one bitcoin. Waits for one refresh at most.

        Returns None if there is no valid price.
        """
        own_refresh = self.start_refresh()
        latest_refresh = self._refresh_future
        if own_refresh:
            own_refresh.result()
        elif latest_refresh and not self.valid_for_s():
            # another thread may have started it, and it may still run
            _wait_if_few_do(latest_refresh)
        return self.cached_price()

    def start_refresh(self) -> Future[None] | None:
        """Starts a refresh in a new thread, and returns its future.

        Returns None and starts nothing if a refresh is running, if the price is fresh,
        or if the last refresh failed less than RETRY_S seconds ago.
        """
        with self._lock:
            now_s = self.monotonic()
            is_running = self._refresh_future and not self._refresh_future.done()
            if is_running:
                return None
            failed_s = self._failed_s
            if failed_s is not None and now_s - failed_s < RETRY_S:
                return None
            is_fresh = self.valid_for_s() > max(0, self.max_age_s - FRESH_S)
            if is_fresh:
                return None
            self._refresh_future = run_in_thread(self._refresh)
            return self._refresh_future

    def cached_price(self, patience_s: float = 0) -> Decimal | None:
        """Returns the cached price if it is still valid, else None.

        If no valid price is cached, waits up to `patience_s` seconds for a refresh that
        is running. It does not wait if the refresh before that one failed, because
        sources that are down would then delay every caller.
        """
        future = self._refresh_future
        may_wait = patience_s and self._failed_s is None
        if may_wait and future and not self.valid_for_s():
            wait([future], patience_s)
        cached = self._cached
        if cached and self.valid_for_s():
            return cached.price
        return None

    def valid_for_s(self) -> float:
        """Returns the seconds until the cached price expires.

        Returns 0 if no price is cached, or if it has expired.
        """
        cached = self._cached
        if not cached:
            return 0
        return max(0, cached.refreshed_s + self.max_age_s - self.monotonic())

    def is_unavailable(self) -> bool:
        """True if the last refresh failed, and no earlier price is still valid.

        False if no refresh has ended yet.
        """
        return self._failed_s is not None and not self.valid_for_s()

    def time_ahead(self, now: datetime) -> timedelta:
        """Returns how far `now` is ahead of the sources' clocks.

        Returns zero unless more than half of the sources agree. A source's time is the
        Date header of its last response, plus the time that has passed since by the
        monotonic clock. So the result is right even if our clock was set meanwhile.
        """
        our_zero_at = now - timedelta(seconds=self.monotonic())
        times_ahead = [
            our_zero_at - zero_at for zero_at in self._monotonic_zero_at.values()
        ]
        return agreed_time_ahead(times_ahead, len(self.sources))

    def _fetch(self, source: PriceSource) -> Decimal | None:
        """Fetches the price from one source.

        Logs a warning and returns None if it fails.
        """
        on_time = partial(self._note_time, source)
        try:
            return fetch_price(self._session, source, on_time)
        except (FetchError, LookupError, ValueError) as error:
            # Logs only the host, since a URL may contain a key.
            host = urlsplit(source.url).hostname
            log.warning("price source %s: %s", host, str(error) or type(error).__name__)
            return None

    def _note_time(self, source: PriceSource, sent_at: datetime) -> None:
        """Notes that the source's clock shows `sent_at` now."""
        zero_at = sent_at - timedelta(seconds=self.monotonic())
        with self._lock:
            # a new mapping, because another thread may be reading the present one
            self._monotonic_zero_at = {**self._monotonic_zero_at, source: zero_at}

    def _refresh(self) -> None:
        """Calls all sources, and caches the price on which enough of them agree."""
        with ThreadPoolExecutor(max_workers=max(1, len(self.sources))) as pool:
            fetched_prices = list(pool.map(self._fetch, self.sources))
        prices = [price for price in fetched_prices if price is not None]
        price = agreed_price(prices, self.quorum)
        now_s = self.monotonic()
        self.on_refresh(price is not None)
        if price is not None:
            self._cached = _CachedPrice(price, now_s)
            self._failed_s = None
            return
        self._failed_s = now_s
        log.error(
            "no price in %s: %d of %d sources answered; `blocktill doctor` says what to do",
            self.currency,
            len(prices),
            len(self.sources),
        )


def _wait_if_few_do(refresh: Future[None]) -> None:
    """Waits for another thread's refresh, unless too many threads already wait for one."""
    may_wait = _WAITERS.acquire(blocking=False)
    if not may_wait:
        return
    try:
        wait([refresh])
    finally:
        _WAITERS.release()


class Prices:
    """The price of a bitcoin in each supported currency.

    The sources of a currency are called only if its price is needed. `on_refresh` is
    called after each refresh of the price in US dollars, with True if enough sources
    agreed on a price.
    """

    def __init__(
        self,
        settings: Settings,
        on_refresh: Callable[[bool], None] = lambda is_good: None,
    ) -> None:
        self._settings = settings
        self.usd = self._rate("USD", settings.price_sources, settings.price_quorum)
        self.usd.on_refresh = on_refresh
        self._rates = {"USD": self.usd}

    def rate_for(self, currency: str) -> Rate:
        """Returns the price in this currency. All callers get the same object."""
        if currency in self._rates:
            return self._rates[currency]
        templates = self._settings.currency_sources
        sources = tuple(template.of(currency) for template in templates)
        # More than half must agree, which is also the default for dollars.
        quorum = len(sources) // 2 + 1
        rate = self._rate(currency, sources, quorum)
        return self._rates.setdefault(currency, rate)  # another thread may be first

    def _rate(self, currency: str, sources: Sequence[PriceSource], quorum: int) -> Rate:
        return Rate(
            currency,
            sources,
            quorum,
            max_age_s=self._settings.price_max_age_s,
            monotonic=_monotonic_s,
            proxy=self._settings.proxy,
        )
