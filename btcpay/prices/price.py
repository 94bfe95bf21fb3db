"""The price of a bitcoin: several sources at once, their median, a quorum, an age limit."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from urllib.parse import urlsplit

from btcpay.http import http_client
from btcpay.http.clock_skew import agreed_time_ahead
from btcpay.http.deadline import run_in_thread
from btcpay.prices.tickers import agreed_price, fetch_price
from btcpay.settings.parsers import PriceSource
from btcpay.settings.settings import Settings
from btcpay.values.errors import FetchError, PriceUnavailable

log = logging.getLogger(__name__)

FRESH_S = 30  # a price younger than this is used without asking again
RETRY_S = 2  # pause after a failure, so that not every request asks a dead source
# How many threads may wait for another thread's refresh. Together with those that wait for the
# database they are fewer than a service has, so that some are left to answer.
_WAITERS = threading.Semaphore(20)
# The plain monotonic clock stops while a machine is suspended: an old price would seem fresh.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_monotonic_s = partial(time.clock_gettime, _CLOCK)


@dataclass(eq=False)
class Rate:
    """The price in one currency as this process knows it. One thread refreshes it at a time.

    `monotonic`: seconds of a clock that never steps. `on_refresh` is called after each refresh,
    with True if it brought a price. `proxy`: the setting.
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
        # The last price, and when it came.
        self._cached: tuple[Decimal, float] | None = None
        # When the last refresh failed; None if it did not.
        self._failed_s: float | None = None
        self._refresh_future: Future[None] | None = None
        # By each source's last answer, the time when the monotonic clock was 0.
        self._monotonic_zero_at: Mapping[PriceSource, datetime] = {}

    def current_price(self) -> Decimal:
        """The price of one bitcoin. Raises PriceUnavailable; waits for one refresh at most."""
        price = self.current_price_or_none()
        if price is None:
            raise PriceUnavailable(
                f"the BTC/{self.currency} price is unavailable right now; retry shortly"
            )
        return price

    def current_price_or_none(self) -> Decimal | None:
        """The price of one bitcoin; waits for one refresh at most."""
        own_refresh = self.start_refresh()
        others_refresh = self._refresh_future
        if own_refresh:
            own_refresh.result()
        elif others_refresh and not self.valid_for_s():
            may_wait = _WAITERS.acquire(blocking=False)
            if may_wait:
                try:
                    wait([others_refresh])
                finally:
                    _WAITERS.release()
        return self.cached_price()

    def start_refresh(self) -> Future[None] | None:
        """Starts a refresh, and returns at once.

        None if one is under way, if the price is fresh, or if all sources failed a moment ago.
        """
        with self._lock:
            if self._refresh_future and not self._refresh_future.done():
                return None
            failed_s = self._failed_s
            if failed_s is not None and self.monotonic() - failed_s < RETRY_S:
                return None
            if self.valid_for_s() > max(0, self.max_age_s - FRESH_S):
                return None
            self._refresh_future = run_in_thread(self._refresh)
            return self._refresh_future

    def cached_price(self, patience_s: float = 0) -> Decimal | None:
        """The known price, else that of a refresh under way if it ends within `patience_s`.

        After a failed refresh nobody waits: dead tickers must not delay every caller.
        """
        future = self._refresh_future
        if patience_s and future and self._failed_s is None and not self.valid_for_s():
            wait([future], patience_s)
        cached = self._cached
        if cached and self.valid_for_s():
            price, _ = cached
            return price
        return None

    def valid_for_s(self) -> float:
        """Seconds until the known price is too old to be used; 0 without one."""
        cached = self._cached
        if not cached:
            return 0
        _, came_s = cached
        return max(0, came_s + self.max_age_s - self.monotonic())

    def time_ahead(self, now: datetime) -> timedelta:
        """The time by which `now` is ahead, if more than half of the sources agree; else zero.

        The monotonic clock carries their time on, so that a step of ours since then is noticed.
        """
        zero_at = now - timedelta(seconds=self.monotonic())
        times_ahead = [zero_at - theirs for theirs in self._monotonic_zero_at.values()]
        return agreed_time_ahead(times_ahead, len(self.sources))

    def _fetch(self, source: PriceSource) -> Decimal | None:
        """One source's price; None, with a line in the log, if it has none."""

        def on_time(sent_at: datetime) -> None:
            zero_at = sent_at - timedelta(seconds=self.monotonic())
            with self._lock:
                self._monotonic_zero_at = {**self._monotonic_zero_at, source: zero_at}

        try:
            return fetch_price(self._session, source, on_time)
        except (FetchError, LookupError, ValueError) as error:
            # The host alone: a URL may carry a key.
            host = urlsplit(source.url).hostname
            log.warning("price source %s: %s", host, str(error) or type(error).__name__)
            return None

    def _refresh(self) -> None:
        with ThreadPoolExecutor(max_workers=max(1, len(self.sources))) as pool:
            answers = list(pool.map(self._fetch, self.sources))
        prices = [price for price in answers if price is not None]
        price = agreed_price(prices, self.quorum)
        now_s = self.monotonic()
        self.on_refresh(price is not None)
        if price is not None:
            self._cached = (price, now_s)
            self._failed_s = None
            return
        self._failed_s = now_s
        log.error(
            "no price in %s: %d of %d sources answered; `blocktill doctor` says what to do",
            self.currency,
            len(prices),
            len(self.sources),
        )


class Prices:
    """The price in each currency of the settings; its sources are asked once somebody needs it.

    Its clock never steps, and runs while the machine sleeps. `on_refresh` is called for the price
    in dollars alone.
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
        if currency in self._rates:
            return self._rates[currency]
        templates = self._settings.currency_sources
        sources = tuple(template.of(currency) for template in templates)
        # More than half must agree, as by default for dollars.
        quorum = len(sources) // 2 + 1
        rate = self._rate(currency, sources, quorum)
        return self._rates.setdefault(currency, rate)

    def _rate(self, currency: str, sources: Sequence[PriceSource], quorum: int) -> Rate:
        return Rate(
            currency,
            sources,
            quorum,
            self._settings.price_max_age_s,
            _monotonic_s,
            proxy=self._settings.proxy,
        )
