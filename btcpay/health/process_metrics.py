"""Metrics that a worker process counts: requests, their latencies, price refreshes.

All workers write files into one folder (prometheus-client's), and any of them can add these up.
"""

import functools
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
PRICED = "btcpay_price_timestamp_seconds"


class Counters(Collector):
    """Counts in this process; `collect` adds up all processes of `folder`, if there is one.

    `unix_s` answers unix time in seconds.
    """

    def __init__(self, folder: str | None, unix_s: Callable[[], float]) -> None:
        self._folder, self._unix_s = folder, unix_s
        if folder:  # the library looks for its folder when it is loaded, which may be long ago
            values.ValueClass = values.MultiProcessValue()
        self._own = own = CollectorRegistry()
        requests = Counter("btcpay_requests", "Answers.", ["operation", "status"], registry=own)
        seconds = Histogram(
            "btcpay_request_seconds",
            "Time from the request to its answer.",
            ["operation"],
            registry=own,
            buckets=BUCKETS_S,
        )
        self._requests = functools.cache(requests.labels)
        self._seconds = functools.cache(seconds.labels)
        self._refreshes = Counter(
            "btcpay_price_refreshes", "Rounds of price requests.", ["outcome"], registry=own
        )
        self._priced = Gauge(
            PRICED, "Unix time of the last price.", registry=own, multiprocess_mode="max"
        )

    def answered(self, operation: str, status: int, took_s: int | float) -> None:
        """Counts one answer; thread safe, some microseconds."""
        self._requests(operation, status).inc()
        self._seconds(operation).observe(took_s)

    def priced(self, good: bool) -> None:
        """Counts one round of questions to the price sources."""
        self._refreshes.labels("price" if good else "none").inc()
        if good:
            self._priced.set(self._unix_s())

    def collect(self) -> Iterator[Metric]:
        """The counts of all processes, and the age of the newest price that any of them has."""
        source = MultiProcessCollector(None, self._folder) if self._folder else self._own
        for metric in source.collect():
            if metric.name == PRICED:
                yield from _age(metric, self._unix_s())
            else:
                yield metric


def _age(metric: Metric, now_s: float) -> Iterator[Metric]:
    """Absent until there was a price; grows while nobody asks for one."""
    newest_s = max(sample.value for sample in metric.samples)
    if newest_s:
        text = "Age of the newest price; grows while nobody asks for one."
        yield GaugeMetricFamily("btcpay_price_age_seconds", text, now_s - newest_s)
