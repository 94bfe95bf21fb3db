"""Metrics, read from the database or counted by the workers.

All workers write files into one folder (prometheus-client's), and any of them can add these up.
"""

import functools
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from peewee import PeeweeException
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from btcpay import __version__
from btcpay.chain.progress import progress_of
from btcpay.merchants.merchants import gap_of_merchant
from btcpay.settlement.attention import REASONS
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.queries import attentions, deliveries, merchants, meta, part_work, sources
from storage.queries.totals import tallies

LATELY = timedelta(hours=1)


@dataclass(eq=False)
class Figures(Collector):
    """The figures of a scrape, read from indexed rows, never from a whole table.

    `folder` is the one of the database's file, None for a server's.
    """

    db: Database
    counts_together: Callable[[], bool]
    now: Callable[[], datetime]
    folder: Path | None

    def collect(self) -> Iterator[Metric]:
        """The metrics; when the database does not answer, hardly more than that fact."""
        try:
            known = list(self._known())
        except PeeweeException:
            known = []
        yield _gauge("database_up", "Whether the database answers.", bool(known))
        together = self.counts_together()
        yield _gauge(
            "rate_limit_store_up",
            "Whether all requests are counted together.",
            together,
        )
        labels = {"version": __version__, "python": platform.python_version()}
        build = GaugeMetricFamily(
            "blocktill_build_info", "Versions that serve.", labels=list(labels)
        )
        build.add_metric(list(labels.values()), 1)
        yield build
        if self.folder:
            with suppress(OSError):  # without the folder there is no database either
                free = shutil.disk_usage(self.folder).free
                yield _gauge(
                    "disk_free_bytes", "Free bytes on the database's disk.", free
                )
        yield from known

    def _known(self) -> Iterator[Metric]:
        db = self.db
        now = self.now()
        count = db.only(tallies.OPEN_INVOICES)[0]
        yield _gauge(
            "open_invoices", "Invoices that wait for money, at most 10,000.", count
        )
        found = dict(db.rows(attentions.BY_REASON))
        # Every reason, even at 0, so that an alarm can be set on one that has never occurred.
        by_reason = {reason: found.get(reason, 0) for reason in REASONS}
        yield _gauges(
            "invoices_attention", "Invoices that need attention.", "reason", by_reason
        )
        settled = int(db.only(tallies.SETTLED)[0])
        yield _gauge(
            "settled_satoshis", "All payments; falls after a reorganisation.", settled
        )
        if checked_at := meta.time(db, meta.Key.CHECKED_AT):
            text = "Unix time of the last complete check."
            yield _gauge("last_check_timestamp_seconds", text, checked_at.timestamp())
        failed = db.only(part_work.FAILED_COUNT)[0]
        yield _gauge(
            "part_work_failed", "What parts could not do yet; tried again.", failed
        )
        late = meta.count(db, meta.Key.PREVIEWS_LATE)
        yield _gauge("previews_late", "Open pages that show a payment late.", late)
        if known := progress_of(db, now):
            yield _gauge(
                "chain_height", "Height of the best block known.", known.height
            )
            yield _gauge("blocks_behind", "Blocks not read yet.", known.behind)
        good = [row.good_at for row in db.rows(sources.PEERS) if row.good_at]
        lately = sum(ms > to_ms(now - LATELY) for ms in good)
        yield _gauge(
            "peers_good", "Nodes that answered a check within the hour.", lately
        )
        listens = bool(meta.get(db, meta.Key.LISTENS))
        yield _gauge(
            "listens", "1 while a check stays and listens to peers.", int(listens)
        )
        yield from _gaps(db)
        oldest_ms = db.only(deliveries.OLDEST_WEBHOOK)[1]
        age = now - from_ms(oldest_ms) if oldest_ms is not None else timedelta()
        text = "Age of the oldest event that an endpoint has not received yet; 0 without one."
        yield _gauge("webhook_waiting_seconds", text, age.total_seconds())
        totals = {(row.name, row.label): row.total for row in db.rows(tallies.ALL)}
        yield from _tallied(totals)


def _gauge(name: str, text: str, value: Any) -> Metric:
    return GaugeMetricFamily(f"blocktill_{name}", text, value)


def _gauges(name: str, text: str, label: str, values: Mapping[str, Any]) -> Metric:
    family = GaugeMetricFamily(f"blocktill_{name}", text, labels=[label])
    for of, value in values.items():
        family.add_metric([of], value)
    return family


def _tallied(totals: dict[tuple[str, str], int]) -> Iterator[Metric]:
    for name, text, label, each in (
        ("checks", "Runs of the check.", "outcome", ("complete", "incomplete")),
        (
            "webhook_deliveries",
            "Attempts.",
            "result",
            ("delivered", "failed", "given_up"),
        ),
        ("mails", "Attempts to send a mail.", "result", ("sent", "failed", "given_up")),
        ("explorer_calls", "Calls to explorers.", "host", None),
        ("explorer_failures", "Calls without a good answer.", "host", None),
    ):
        family = CounterMetricFamily(f"blocktill_{name}", text, labels=[label])
        for of in each or [of for tallied, of in totals if tallied == name]:
            family.add_metric([of], totals.get((name, of), 0))
        yield family
    for name, text in (
        ("blocks_read", "Blocks that the checks read."),
        ("reorganisations", "Reorganisations of the chain."),
        ("payments_undone", "Payments that a reorganisation took back."),
    ):
        total = totals.get((name.removesuffix("_read"), ""), 0)
        yield CounterMetricFamily(f"blocktill_{name}", text, total)
    took_s = totals.get(("check_ms", ""), 0) / 1000
    yield CounterMetricFamily(
        "blocktill_check_seconds", "Time that the checks took.", took_s
    )


def _gaps(db: Database) -> Iterator[Metric]:
    rows = db.rows(merchants.ALL)
    needed = {row.name: gap_of_merchant(db, row).limit for row in rows}
    said = {row.name: row.wallet_gap_limit for row in rows}
    yield _gauges(
        "gap_needed", "The gap limit that the wallet needs now.", "merchant", needed
    )
    yield _gauges(
        "gap_limit", "The gap limit that was noted for the wallet.", "merchant", said
    )


BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
PRICED = "blocktill_price_timestamp_seconds"


class Counters(Collector):
    """Counts in this process; `collect` adds up all processes of `folder`, if there is one.

    `unix_s` answers unix time in seconds.
    """

    def __init__(self, folder: str | None, unix_s: Callable[[], float]) -> None:
        self._folder = folder
        self._unix_s = unix_s
        if folder:  # the library reads its folder when it is loaded, perhaps long ago
            values.ValueClass = values.MultiProcessValue()
        self._own = own = CollectorRegistry()
        requests = Counter(
            "blocktill_requests", "Answers.", ["operation", "status"], registry=own
        )
        seconds = Histogram(
            "blocktill_request_seconds",
            "Time from the request to its answer.",
            ["operation"],
            registry=own,
            buckets=BUCKETS_S,
        )
        self._requests = functools.cache(requests.labels)
        self._seconds = functools.cache(seconds.labels)
        self._refreshes = Counter(
            "blocktill_price_refreshes",
            "Rounds of price requests.",
            ["outcome"],
            registry=own,
        )
        self._priced = Gauge(
            PRICED,
            "Unix time of the last price.",
            registry=own,
            multiprocess_mode="max",
        )

    def count_answer(self, operation: str, status: int, took_s: int | float) -> None:
        """Counts one answer; thread safe, some microseconds."""
        self._requests(operation, status).inc()
        self._seconds(operation).observe(took_s)

    def count_price_refresh(self, good: bool) -> None:
        self._refreshes.labels("price" if good else "none").inc()
        if good:
            self._priced.set(self._unix_s())

    def collect(self) -> Iterator[Metric]:
        """The counts of all processes, and the age of the newest price in any of them."""
        source = (
            MultiProcessCollector(None, self._folder) if self._folder else self._own
        )
        for metric in source.collect():
            if metric.name != PRICED:
                yield metric
            elif newest_s := max(sample.value for sample in metric.samples):
                text = "Age of the newest price; grows while nobody asks for one."
                yield _gauge("price_age_seconds", text, self._unix_s() - newest_s)
