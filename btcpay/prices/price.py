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
# Threads that may wait for another's refresh. Even with those that wait for the database they are
# fewer than a service has, so that some are left to answer.
_PLACES = threading.Semaphore(20)
# The plain monotonic clock stops while a machine is suspended: an old price would seem fresh.
_steady_s = partial(
    time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
)


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
    on_refresh: Callable[[bool], None] = lambda good: None
    proxy: str = ""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._session = http_client.Session(max(1, len(self.sources)), self.proxy)
        self._good: tuple[Decimal, float] | None = (
            None  # the last price, and when it came
        )
        self._failed_s: float | None = (
            None  # when the last refresh failed, unless it did not
        )
        self._refreshing: Future[None] | None = None
        # For each source, the time when the monotonic clock was 0, by its last answer.
        self._began: Mapping[PriceSource, datetime] = {}

    def current_price(self) -> Decimal:
        """The price of one bitcoin. Raises PriceUnavailable; waits for one refresh at most."""
        price = self.current_price_or_none()
        if price is None:
            raise PriceUnavailable(
                f"the BTC/{self.currency} price is unavailable right now; retry shortly"
            )
        return price

    def current_price_or_none(self) -> Decimal | None:
        if started := self.start_refresh():
            started.result()
        elif (
            not self.valid_for_s()
            and self._refreshing
            and _PLACES.acquire(blocking=False)
        ):
            try:
                wait([self._refreshing])
            finally:
                _PLACES.release()
        return self.cached_price()

    def start_refresh(self) -> Future[None] | None:
        """Starts a refresh, and returns at once.

        None if one is under way, the price is fresh, or all failed a moment ago.
        """
        with self._lock:
            is_under_way = self._refreshing is not None and not self._refreshing.done()
            now_s = self.monotonic()
            failed_s = self._failed_s
            rests = failed_s is not None and now_s - failed_s < RETRY_S
            is_fresh = self.valid_for_s() > max(0, self.max_age_s - FRESH_S)
            if is_under_way or rests or is_fresh:
                return None
            self._refreshing = run_in_thread(self._refresh)
            return self._refreshing

    def cached_price(self, patience_s: float = 0) -> Decimal | None:
        """The known price, else the one that `start_refresh` brings within `patience_s`.

        After a failed refresh nobody waits: dead tickers must not delay every caller.
        """
        if (
            patience_s
            and self._refreshing
            and self._failed_s is None
            and not self.valid_for_s()
        ):
            wait([self._refreshing], patience_s)
        if self._good and self.valid_for_s():
            return self._good[0]
        return None

    def valid_for_s(self) -> float:
        """Seconds until the known price is too old to be used; 0 without one."""
        good = self._good
        if good:
            return max(0, good[1] + self.max_age_s - self.monotonic())
        return 0

    def time_ahead(self, now: datetime) -> timedelta:
        """The time by which `now` is ahead, if more than half of the sources agree; else zero.

        The monotonic clock carries their time on, so that a step of ours since then is noticed.
        """
        began = now - timedelta(seconds=self.monotonic())
        aheads = [began - theirs for theirs in self._began.values()]
        return agreed_time_ahead(aheads, len(self.sources))

    def _ask(self, source: PriceSource) -> Decimal | None:
        """One source's price; None, with a line in the log, when it has none."""

        def note_time(sent_at: datetime) -> None:
            began = sent_at - timedelta(seconds=self.monotonic())
            with self._lock:
                self._began = {**self._began, source: began}

        try:
            return fetch_price(self._session, source, note_time)
        except (FetchError, LookupError, ValueError) as error:
            # The host alone: a URL may carry a key.
            host = urlsplit(source.url).hostname
            log.warning("price source %s: %s", host, str(error) or type(error).__name__)
            return None

    def _refresh(self) -> None:
        with ThreadPoolExecutor(max_workers=max(1, len(self.sources))) as pool:
            answers = list(pool.map(self._ask, self.sources))
        prices = [price for price in answers if price is not None]
        price = agreed_price(prices, self.quorum)
        at_s = self.monotonic()
        self.on_refresh(price is not None)
        if price is not None:
            self._good = (price, at_s)
            self._failed_s = None
            return
        self._failed_s = at_s
        counts = len(prices), len(self.sources)
        message = "no price in %s: %d of %d sources answered; `blocktill doctor` says what to do"
        log.error(message, self.currency, *counts)


class Prices:
    """The price in each currency by the settings; its sources are asked once somebody wants it.

    On a clock that never steps and runs while the machine sleeps. `on_refresh` is called for the
    price in dollars alone.
    """

    def __init__(
        self, settings: Settings, on_refresh: Callable[[bool], None] = lambda good: None
    ) -> None:
        self._settings = settings
        self.usd = self._rate("USD", settings.price_sources, settings.price_quorum)
        self.usd.on_refresh = on_refresh
        self._rates = {"USD": self.usd}

    def rate_for(self, currency: str) -> Rate:
        if currency in self._rates:
            return self._rates[currency]
        sources = tuple(
            source.of(currency) for source in self._settings.currency_sources
        )
        new = self._rate(
            currency, sources, len(sources) // 2 + 1
        )  # most, as of the dollar's
        return self._rates.setdefault(currency, new)

    def _rate(self, currency: str, sources: Sequence[PriceSource], quorum: int) -> Rate:
        max_age_s = self._settings.price_max_age_s
        proxy = self._settings.proxy
        return Rate(currency, sources, quorum, max_age_s, _steady_s, proxy=proxy)
