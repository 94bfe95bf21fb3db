"""Metrics that a worker process counts: requests, their latencies, price refreshes.

All workers write files into one folder (prometheus-client's), and any of them can add these up.
"""

import fcntl
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
PRICED = "btcpay_price_timestamp_seconds"


class WorkerNumber:
    """A call returns the lowest number that no other live process of this folder has.

    A new worker goes on with the files of one that died: totals stay, files do not pile up. The
    lock ends with its process, however that ends.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pid = self._number = -1

    def __call__(self) -> int:
        if self._pid != os.getpid():
            self._pid, self._number = os.getpid(), self._claim()
        return self._number

    def _claim(self) -> int:
        for number in itertools.count():
            lock = os.open(self._folder / f"{number}.lock", os.O_CREAT | os.O_WRONLY, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                os.close(lock)
        return number


class Counters(Collector):
    """Counts in this process; `collect` adds up all processes of `folder`, if there is one.

    `unix_s` answers unix time in seconds.
    """

    def __init__(self, folder: str | None, unix_s: Callable[[], float]) -> None:
        self._folder, self._unix_s = folder, unix_s
        if folder:
            # How the library is told to use other names than process ids.
            values.ValueClass = values.MultiProcessValue(WorkerNumber(Path(folder)))
        self._own = own = CollectorRegistry()
        self._requests = Counter(
            "btcpay_requests", "Answers.", ["operation", "status"], registry=own
        )
        self._seconds = Histogram(
            "btcpay_request_seconds",
            "Time from the request to its answer.",
            ["operation"],
            registry=own,
            buckets=BUCKETS_S,
        )
        self._refreshes = Counter(
            "btcpay_price_refreshes", "Questions to the price sources.", ["outcome"], registry=own
        )
        self._priced = Gauge(
            PRICED, "Unix time of the last price.", registry=own, multiprocess_mode="max"
        )
        self._children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def answered(self, operation: str, status: int, took_s: int | float) -> None:
        """Counts one answer; thread safe, some microseconds."""
        found = self._children.get((operation, status))
        if found is None:
            found = self._requests.labels(operation, status), self._seconds.labels(operation)
            self._children[operation, status] = found
        found[0].inc()
        found[1].observe(took_s)

    def priced(self, good: bool) -> None:
        """Counts one round of questions to the price sources."""
        self._refreshes.labels("price" if good else "none").inc()
        if good:
            self._priced.set(self._unix_s())

    def collect(self) -> Iterator[Metric]:
        """What all processes counted, and the age of the newest price that any of them has."""
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
        told = "Age of the newest price; grows while nobody asks for one."
        yield GaugeMetricFamily("btcpay_price_age_seconds", told, now_s - newest_s)
