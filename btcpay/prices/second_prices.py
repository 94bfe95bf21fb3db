"""What a bitcoin costs in other currencies than dollars: information, for which nobody waits long.

They are asked for at the moments at which the dollars are, beside them, in threads of their own.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from decimal import Decimal
from typing import Protocol


class Priced(Protocol):
    """The price in one currency, as `btcpay.prices.price` knows it."""

    def current_or_none(self) -> Decimal | None:
        """The price, asked for when it is not fresh."""

    def known(self) -> Decimal | None:
        """The price without asking."""

    def has_failed(self) -> bool:
        """Whether there was none when it was asked for last."""

    def good_for_s(self) -> float:
        """How much longer the known price is one."""


class SecondPrices:
    """Every currency that was ever asked for, each by what `new` makes for its code."""

    def __init__(self, new: Callable[[str], Priced]) -> None:
        self._new = new
        self._prices: dict[str, Priced] = {}
        self._asked: dict[str, Future] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(thread_name_prefix="second-price")

    def ask(self, currency: str) -> None:
        """Begins to ask, unless that is under way or the price is fresh; returns at once."""
        with self._lock:
            running = self._asked.get(currency)
            if running is None or running.done():
                asking = self._of(currency).current_or_none
                self._asked[currency] = self._threads.submit(asking)

    def known(self, currency: str, patience_s: float = 0) -> Decimal | None:
        """The price, if it is one; else what comes of asking within `patience_s`.

        Where it failed last time nobody waits: dead tickers delay nothing twice.
        """
        prices = self._of(currency)
        asked = self._asked.get(currency)
        if asked and prices.known() is None and not prices.has_failed():
            wait([asked], patience_s)
        return prices.known()

    def asked(self, currency: str) -> Decimal | None:
        """The price, however long it takes to be asked for."""
        return self._of(currency).current_or_none()

    def good_for_s(self, currency: str) -> float:
        """How much longer the known price is one; 0 without any."""
        return self._of(currency).good_for_s()

    def _of(self, currency: str) -> Priced:
        return self._prices.get(currency) or self._prices.setdefault(currency, self._new(currency))
