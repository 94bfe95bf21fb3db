"""Metrics from the database: read at each scrape, whichever process counted them."""

import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from peewee import PeeweeException
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from btcpay import __version__
from btcpay.chain.progress import progress_of
from btcpay.merchants.gap_limit import gap_of_merchant
from btcpay.settlement.attention import REASONS
from btcpay.values.times import from_ms
from storage.database import Database
from storage.queries import attentions, merchants, meta, tallies, webhooks


class Figures(Collector):
    """What a scrape reads from a service's database and store: indexed rows, no whole table.

    `folder` is the one that the database's file lies in, None for a server's.
    """

    def __init__(
        self,
        db: Database,
        is_limiter_complete: Callable[[], bool],
        now: Callable[[], datetime],
        folder: Path | None,
    ) -> None:
        self._db, self._is_limiter_complete, self._now = db, is_limiter_complete, now
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        """The metrics; when the database does not answer, only that."""
        try:
            known = list(self._known())
        except PeeweeException:
            known = []
        yield GaugeMetricFamily("btcpay_database_up", "Whether the database answers.", bool(known))
        yield GaugeMetricFamily(
            "btcpay_rate_limit_store_up",
            "Whether all requests are counted together.",
            self._is_limiter_complete(),
        )
        yield _build()
        if self._folder:
            yield from _disk(self._folder)
        yield from known

    def _known(self) -> Iterator[Metric]:
        db = self._db
        count = db.only(tallies.OPEN_INVOICES)["invoices"]
        yield GaugeMetricFamily(
            "btcpay_open_invoices", "Invoices that wait for money, at most 10,000.", count
        )
        yield _wanting({row["reason"]: row["invoices"] for row in db.rows(attentions.BY_REASON)})
        settled = db.only(tallies.SETTLED)["sats"]
        yield GaugeMetricFamily(
            "btcpay_settled_satoshis", "All payments; less after a reorganisation.", int(settled)
        )
        if checked_at := meta.time(db, meta.Key.CHECKED_AT):
            told = "Unix time of the last complete check."
            yield GaugeMetricFamily(
                "btcpay_last_check_timestamp_seconds", told, checked_at.timestamp()
            )
        if known := progress_of(db, self._now()):
            yield GaugeMetricFamily(
                "btcpay_chain_height", "Height of the best block known.", known.height
            )
            told = "Blocks that are still to be read."
            yield GaugeMetricFamily("btcpay_blocks_behind", told, known.behind)
        yield from _gaps(db)
        oldest_ms = db.only(webhooks.OLDEST_WAITING)["at"]
        age = self._now() - from_ms(oldest_ms) if oldest_ms is not None else timedelta()
        told = "Age of the oldest event that an endpoint was not told of yet; 0 without one."
        yield GaugeMetricFamily("btcpay_webhook_waiting_seconds", told, age.total_seconds())
        yield from _tallied(
            {(row["name"], row["label"]): row["total"] for row in db.rows(tallies.ALL)}
        )


def _tallied(totals: dict[tuple[str, str], int]) -> Iterator[Metric]:
    """Checks, and calls to explorers, since the database was made."""
    runs = CounterMetricFamily("btcpay_checks", "Runs of the check.", labels=["outcome"])
    for outcome in ("complete", "incomplete"):
        runs.add_metric([outcome], totals.get(("checks", outcome), 0))
    yield runs
    took_s = totals.get(("check_ms", ""), 0) / 1000
    yield CounterMetricFamily("btcpay_check_seconds", "Time that the checks took.", took_s)
    sent = CounterMetricFamily("btcpay_webhook_deliveries", "Attempts.", labels=["result"])
    for result in ("delivered", "failed", "given_up"):
        sent.add_metric([result], totals.get(("webhook_deliveries", result), 0))
    yield sent
    read = totals.get(("blocks", ""), 0)
    yield CounterMetricFamily("btcpay_blocks_read", "Blocks that the checks read.", read)
    for name, told in (
        ("reorganisations", "Changes to a chain that left blocks behind."),
        ("payments_undone", "Payments that such a change took back."),
    ):
        yield CounterMetricFamily(f"btcpay_{name}", told, totals.get((name, ""), 0))
    mail = CounterMetricFamily("btcpay_mails", "Attempts to send a mail.", labels=["result"])
    for result in ("sent", "failed", "given_up"):
        mail.add_metric([result], totals.get(("mails", result), 0))
    yield mail
    for name, told in (
        ("explorer_calls", "Calls to explorers."),
        ("explorer_failures", "Questions that an explorer did not answer as it should."),
    ):
        family = CounterMetricFamily(f"btcpay_{name}", told, labels=["host"])
        for (tallied, host), total in totals.items():
            if tallied == name:
                family.add_metric([host], total)
        yield family


def _wanting(counts: dict[str, int]) -> Metric:
    """Every reason, also with 0, so that an alarm can be set on one that never occurred."""
    told = "Invoices that want a human."
    family = GaugeMetricFamily("btcpay_invoices_attention", told, labels=["reason"])
    for reason in REASONS:
        family.add_metric([reason], counts.get(reason, 0))
    return family


def _gaps(db: Database) -> Iterator[Metric]:
    """Of each merchant what its wallet's gap limit must be, and what it is said to be."""
    told = "The gap limit that the merchant's wallet needs now."
    needed = GaugeMetricFamily("btcpay_gap_needed", told, labels=["merchant"])
    told = "The gap limit that the merchant's wallet is said to have."
    limit = GaugeMetricFamily("btcpay_gap_limit", told, labels=["merchant"])
    for merchant in db.rows(merchants.ALL):
        needed.add_metric([merchant["name"]], gap_of_merchant(db, merchant).limit)
        limit.add_metric([merchant["name"]], merchant["wallet_gap_limit"])
    yield from (needed, limit)


def _disk(folder: Path) -> Iterator[Metric]:
    """Nothing when the folder is gone: then the database is, too."""
    with suppress(OSError):
        told, free = "Free bytes on the database's disk.", shutil.disk_usage(folder).free
        yield GaugeMetricFamily("btcpay_disk_free_bytes", told, free)


def _build() -> Metric:
    labels = {"version": __version__, "python": platform.python_version()}
    family = GaugeMetricFamily("btcpay_build_info", "What serves.", labels=list(labels))
    family.add_metric(list(labels.values()), 1)
    return family
