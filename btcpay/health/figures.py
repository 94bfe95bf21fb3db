"""The Prometheus metrics that are read from the database at each scrape."""

import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from btcpay import __version__
from btcpay.chain.progress import progress_of
from btcpay.merchants.merchants import gap_of_merchant
from btcpay.settlement.attention import REASONS
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.faults import PeeweeException
from storage.queries import attentions, deliveries, merchants, meta, part_work, sources
from storage.queries.totals import tallies

LATELY = timedelta(hours=1)  # a peer that answered within this time counts as good
# Name, help text, label name and label values. Every scrape contains all of these.
LABELLED_TALLIES = (
    ("checks", "Runs of the check.", "outcome", ("complete", "incomplete")),
    ("webhook_deliveries", "Attempts.", "result", ("delivered", "failed", "given_up")),
    ("mails", "Attempts to send a mail.", "result", ("sent", "failed", "given_up")),
)
# Name and help text. The values of the label `host` are the hosts that were called.
TALLIES_OF_HOSTS = (
    ("explorer_calls", "Calls to explorers."),
    ("explorer_failures", "Calls without a good answer."),
)
# Name, help text and the name of the stored tally.
PLAIN_TALLIES = (
    ("blocks_read", "Blocks that the checks read.", "blocks"),
    ("reorganisations", "Reorganisations of the chain.", "reorganisations"),
    (
        "payments_undone",
        "Payments that a reorganisation took back.",
        "payments_undone",
    ),
)
# The stored tallies by name and label; the label is "" if a tally has none.
Totals = Mapping[tuple[str, str], int]


@dataclass(eq=False)
class Figures(Collector):
    """Collects the metrics that come from the database.

    Its queries use indexes, and never load a whole table of payments.

    - `counts_together`: returns True while all worker processes share their rate limits.
    - `now`: returns the current time.
    - `folder`: the folder of the SQLite file; None for PostgreSQL.
    """

    db: Database
    counts_together: Callable[[], bool]
    now: Callable[[], datetime]
    folder: Path | None

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics.

        If the database fails, yields only the metrics that do not come from the database.
        """
        try:
            figures = list(self._figures())
        except PeeweeException:
            figures = []
        is_up = bool(figures)
        yield gauge("database_up", "Whether the database answers.", is_up)
        yield gauge(
            "rate_limit_store_up",
            "Whether all requests are counted together.",
            self.counts_together(),
        )
        yield _build()
        if self.folder:
            with suppress(OSError):  # the folder may be missing
                free = shutil.disk_usage(self.folder).free
                yield gauge(
                    "disk_free_bytes", "Free bytes on the database's disk.", free
                )
        yield from figures

    def _figures(self) -> Iterator[Metric]:
        db = self.db
        now = self.now()
        yield from _invoices(db)
        yield from _check(db)
        yield from _chain(db, now)
        yield from _peers(db, now)
        yield from _gaps(db)
        yield _oldest_webhook(db, now)
        yield from _tallies(db)


def gauge(name: str, text: str, value: Any) -> Metric:
    return GaugeMetricFamily(f"blocktill_{name}", text, value)


def gauges(name: str, text: str, label: str, values: Mapping[str, Any]) -> Metric:
    """Returns a gauge with one label. `values` has the samples by the label's value."""
    family = GaugeMetricFamily(f"blocktill_{name}", text, labels=[label])
    for label_value, value in values.items():
        family.add_metric([label_value], value)
    return family


def _build() -> Metric:
    labels = {"version": __version__, "python": platform.python_version()}
    build = GaugeMetricFamily(
        "blocktill_build_info", "Versions that serve.", labels=list(labels)
    )
    build.add_metric(list(labels.values()), 1)
    return build


def _invoices(db: Database) -> Iterator[Metric]:
    (open_count,) = db.get(tallies.OPEN_INVOICES)
    yield gauge(
        "open_invoices", "Invoices that wait for money, at most 10,000.", open_count
    )
    counts = dict(db.rows(attentions.BY_REASON))
    # Every reason is exported, even at 0: an alert may use a reason that has never occurred.
    by_reason = {reason: counts.get(reason, 0) for reason in REASONS}
    yield gauges(
        "invoices_attention",
        "Invoices that need attention.",
        "reason",
        by_reason,
    )
    (settled_sats,) = db.get(tallies.SETTLED)
    text = "All payments; falls after a reorganisation."
    yield gauge("settled_satoshis", text, int(settled_sats))


def _check(db: Database) -> Iterator[Metric]:
    checked_at = meta.time(db, meta.Key.CHECKED_MS)
    if checked_at:
        text = "Unix time of the last complete check."
        yield gauge("last_check_timestamp_seconds", text, checked_at.timestamp())
    (failed_count,) = db.get(part_work.FAILED_COUNT)
    text = "What parts could not do yet; tried again."
    yield gauge("part_work_failed", text, failed_count)
    late = meta.count(db, meta.Key.PREVIEWS_LATE)
    yield gauge("previews_late", "Open pages that show a payment late.", late)


def _chain(db: Database, now: datetime) -> Iterator[Metric]:
    progress = progress_of(db, now)
    if progress:
        yield gauge("chain_height", "Height of the best block known.", progress.height)
        yield gauge("blocks_behind", "Blocks not read yet.", progress.behind)


def _peers(db: Database, now: datetime) -> Iterator[Metric]:
    since_ms = to_ms(now - LATELY)
    good_count = 0
    for peer in db.rows(sources.PEERS):
        if peer.good_ms and peer.good_ms > since_ms:
            good_count += 1
    text = "Nodes that answered a check within the hour."
    yield gauge("peers_good", text, good_count)
    listens = bool(meta.get(db, meta.Key.LISTENS))
    text = "1 while a check stays and listens to peers."
    yield gauge("listens", text, int(listens))


def _gaps(db: Database) -> Iterator[Metric]:
    needed_limits = {}
    noted_limits = {}
    for merchant in db.rows(merchants.ALL):
        needed_limits[merchant.name] = gap_of_merchant(db, merchant).limit
        noted_limits[merchant.name] = merchant.wallet_gap_limit
    yield gauges(
        "gap_needed",
        "The gap limit that the wallet needs now.",
        "merchant",
        needed_limits,
    )
    yield gauges(
        "gap_limit",
        "The gap limit that was noted for the wallet.",
        "merchant",
        noted_limits,
    )


def _oldest_webhook(db: Database, now: datetime) -> Metric:
    _, oldest_ms = db.get(deliveries.OLDEST_WEBHOOK)
    age = timedelta()
    if oldest_ms is not None:
        age = now - from_ms(oldest_ms)
    text = (
        "Age of the oldest event that an endpoint has not received yet; 0 without one."
    )
    return gauge("webhook_waiting_seconds", text, age.total_seconds())


def _tallies(db: Database) -> Iterator[Metric]:
    totals = {(row.name, row.label): row.total for row in db.rows(tallies.ALL)}
    for name, text, label, label_values in LABELLED_TALLIES:
        yield _counters(totals, name, text, label, label_values)
    for name, text in TALLIES_OF_HOSTS:
        hosts = [host for tally, host in totals if tally == name]
        yield _counters(totals, name, text, "host", hosts)
    for name, text, tally in PLAIN_TALLIES:
        yield CounterMetricFamily(f"blocktill_{name}", text, totals.get((tally, ""), 0))
    took_ms = totals.get(("check_ms", ""), 0)
    yield CounterMetricFamily(
        "blocktill_check_seconds", "Time that the checks took.", took_ms / 1000
    )


def _counters(
    totals: Totals,
    name: str,
    text: str,
    label: str,
    label_values: Sequence[str],
) -> Metric:
    family = CounterMetricFamily(f"blocktill_{name}", text, labels=[label])
    for label_value in label_values:
        family.add_metric([label_value], totals.get((name, label_value), 0))
    return family
