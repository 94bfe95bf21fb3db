"""Counts the Prometheus metrics of HTTP requests and of exchange rates.

All worker processes write their counts into files in one folder (the multiprocess mode
of prometheus_client). So each worker can add up the counts of all.
"""

import functools
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from btcpay.health.figures import gauge

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
PRICE_TIME = "blocktill_price_timestamp_seconds"


class Counters(Collector):
    """Counts requests and refreshes of the exchange rate, and collects the counts.

    - `folder`: `collect` adds up the counts of all processes that write to this folder.
      If it is None, `collect` yields the counts of this process.
    - `unix_s`: a function that returns the Unix time in seconds.
    """

    def __init__(self, folder: str | None, unix_s: Callable[[], float]) -> None:
        self._folder = folder
        self._unix_s = unix_s
        if folder:
            # The library chose this class when it was imported. If the variable FOLDER of
            # scrape.py was not yet set then, it chose the class for one process.
            values.ValueClass = values.MultiProcessValue()
        registry = CollectorRegistry()
        requests = Counter(
            "blocktill_requests",
            "Answers.",
            ["operation", "status"],
            registry=registry,
        )
        seconds = Histogram(
            "blocktill_request_seconds",
            "Time from the request to its answer.",
            ["operation"],
            registry=registry,
            buckets=BUCKETS_S,
        )
        self._registry = registry
        self._requests = functools.cache(requests.labels)
        self._seconds = functools.cache(seconds.labels)
        self._refreshes = Counter(
            "blocktill_price_refreshes",
            "Rounds of price requests.",
            ["outcome"],
            registry=registry,
        )
        self._price_time = Gauge(
            PRICE_TIME,
            "Unix time of the last price.",
            registry=registry,
            multiprocess_mode="max",
        )

    def count_answer(self, operation: str, status: int, took_s: int | float) -> None:
        """Counts one response, which took `took_s` seconds.

        This method is thread-safe, and takes only microseconds.
        """
        self._requests(operation, status).inc()
        self._seconds(operation).observe(took_s)

    def count_price_refresh(self, is_good: bool) -> None:
        """Counts one round of requests to the sources of the exchange rate.

        `is_good` is True if the sources agreed on a rate.
        """
        if is_good:
            self._refreshes.labels("price").inc()
            self._price_time.set(self._unix_s())
        else:
            self._refreshes.labels("none").inc()

    def collect(self) -> Iterator[Metric]:
        """Yields the counts.

        In place of the time of the newest exchange rate, yields its age in seconds.
        """
        for metric in self._counts():
            if metric.name != PRICE_TIME:
                yield metric
                continue
            newest_s = max(sample.value for sample in metric.samples)
            if newest_s:  # 0 until there was a price
                text = "Age of the newest price; grows while nobody asks for one."
                yield gauge("price_age_seconds", text, self._unix_s() - newest_s)

    def _counts(self) -> Iterator[Metric]:
        """Yields the counts of all processes, or of this one if there is no folder."""
        if self._folder:
            yield from MultiProcessCollector(None, self._folder).collect()
        else:
            yield from self._registry.collect()
