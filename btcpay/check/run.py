"""The check: follows the chain, reads blocks, and looks for payments in the mempool."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.look_ahead import look_ahead_if_due
from btcpay.chain.pool import Pool
from btcpay.chain.sources import BlockSource
from btcpay.check.apply import try_apply
from btcpay.check.catch_up import CatchUp
from btcpay.check.due import CLOSED_LATELY, NEVER, is_waiting
from btcpay.check.finish import renew_and_erase
from btcpay.check.mempool import Look, missing_outputs, watched_invoices
from btcpay.check.plan import plan
from btcpay.check.report import Report
from btcpay.invoices.part_work import reason_of
from btcpay.settlement.settle import HELD_AT_MOST
from btcpay.settlement.values import Scan
from btcpay.values.errors import ExplorerError, OutOfQuota
from btcpay.values.times import SET_CLOCK, to_ms
from storage.models import Invoice
from storage.queries import blocks, invoices, part_work
from storage.queries.lists import mempool_watch

log = logging.getLogger(__name__)

MOST_RUN_S = 300  # all requests of a run end after this time


@dataclass(frozen=True, kw_only=True)
class Checker(CatchUp):
    """A check, with its sources of headers and blocks, and its explorers.

    `sources` and `explorers` may be the same object. `in_flight` is the number of
    parallel requests to the mempool. `hear` applies announced transactions; None if no
    source announces any.
    """

    explorers: Explorers
    in_flight: int = 4
    hear: Callable[[Report], None] | None = None

    def run(self, ids: Sequence[str] | None = None) -> Report:
        """Follows the chain, updates every invoice, and queries the mempool.

        `ids` are the invoices for which the mempool is queried; if it is None, the plan
        chooses them. An error in one invoice does not stop the run.
        """
        report = Report(began_at=self.now())
        began_ns = time.monotonic_ns()
        with self._limit_time(report):
            self._run(ids, report)
        if ids is not None:
            self.note_read(report)  # `finish` does so after a run for all invoices
        self._compare_clocks(report)
        report.took_ms = (time.monotonic_ns() - began_ns) // 1_000_000
        return report

    def _run(self, ids: Sequence[str] | None, report: Report) -> None:
        """Does the work of `run`, without its limits and measurements."""
        is_known = self.follow(report)
        self.settle_deep(report)
        if self.hear:
            self._hear(self.hear, report)  # before any invoice expires
        if not is_known:
            return
        if not self.settings.explorers:
            self.end_by_blocks(report, has_mempool=False)
            return
        if ids is not None:
            self._look_for(ids, report)
            self.end_by_blocks(report, has_mempool=True)
            return
        self._look_for(self._plan_looks(report), report)
        self.end_by_blocks(report, has_mempool=True)
        network = self.settings.network
        look_ahead_if_due(self.db, self.explorers, network, self.now())

    def _plan_looks(self, report: Report) -> list[str]:
        """Returns the ids of the invoices for which the mempool is queried in this run.

        Reports the invoices that have to wait.
        """
        now = self.now()
        gone_after = self.settings.network.gone_after
        candidates = watched_invoices(self.db, self.settings, now)
        allowance = self.explorers.allowance()
        ends_before = report.ends_before or NEVER
        looks = plan(candidates, gone_after, allowance, now, ends_before)
        report.unreached = looks.unreached
        report.put_off = looks.put_off
        return looks.ids

    def _hear(self, hear: Callable[[Report], None], report: Report) -> None:
        """Applies announced transactions by a call of `hear`.

        They are not verified, so lack of memory for them does not end the run.
        """
        try:
            hear(report)
        except MemoryError as error:
            log.error("announced payments are not shown: %s", reason_of(error))  # noqa: TRY400

    def look_again(self, report: Report) -> bool:
        """Queries the mempool, between two runs, for invoices whose pages are open.

        `report` is that of the last run. Returns True if a payer still waits at one of
        these pages. Does nothing if there are no explorers, or if the last run found no
        tip.
        """
        if not report.has_tip or not self.settings.explorers:
            return False
        now = self.now()
        opened_after_ms = to_ms(now - CLOSED_LATELY)
        rows = self.db.rows(mempool_watch.ASKED, after=opened_after_ms)
        candidates = watched_invoices(self.db, self.settings, now, rows)
        gone_after = self.settings.network.gone_after
        allowance = self.explorers.allowance()
        others_wait = report.put_off > 0
        looks = plan(candidates, gone_after, allowance, now, others_wait=others_wait)
        if looks.ids:
            # Failures of these looks must not change the result of the run.
            later = replace(report, failed=[], unreached=[])
            with self._limit_time(report):
                self._look_for(looks.ids, later)
            report.looked_at = later.looked_at
            report.blocks_read = later.blocks_read
        return any(is_waiting(invoice, now) for invoice in candidates)

    @contextmanager
    def _limit_time(self, report: Report) -> Iterator[None]:
        """Limits the time for requests. At the end, stores their costs and outcomes.

        The next pool chooses its sources by these outcomes.
        """
        pools: set[Pool[BlockSource]] = {self.explorers, self.sources}
        for pool in pools:
            pool.end_within(MOST_RUN_S)
        try:
            yield
        finally:
            for pool in pools:
                pool.close()
                self.record.count(self.db, pool.new_totals())
                pool.store_outcomes(self.db, self.settings, self.now())
        report.calls = 0
        report.read_bytes = 0
        for pool in pools:
            for source in pool.all:
                report.calls += source.calls
                report.read_bytes += source.bytes_read

    def _look_for(self, ids: Sequence[str], report: Report) -> None:
        """Queries the mempool for these invoices, and applies the responses."""
        looks = self._make_looks(ids, report)
        if any(missing_outputs(self.db, look) for look in looks):
            self.follow(report)  # a new block may contain what left the mempool
        for look in looks:
            self._apply(look, report)

    def _make_looks(self, ids: Sequence[str], report: Report) -> list[Look]:
        """Makes a look for each invoice, and returns those that succeeded.

        `in_flight` requests run at a time, in threads that do not use the database.
        """
        rows = [self.db.get(invoices.WHOLE, id=id) for id in ids]
        looks = []
        with ThreadPoolExecutor(self.in_flight) as threads:
            futures = [threads.submit(self._ask_explorers, row) for row in rows]
        # All requests have ended here.
        for row, future in zip(rows, futures, strict=True):
            try:
                looks.append(future.result())
            except OutOfQuota:
                report.put_off += 1
            except (ExplorerError, MemoryError) as error:
                # A bad response of an explorer must not end the run.
                self._note_failed_look(row, error, report)
        return looks

    def _ask_explorers(self, row: Invoice) -> Look:
        asked_at = self.now()
        began_s = time.monotonic()
        mempool = self.explorers.mempool(row.deposit_address, bytes.fromhex(row.script))
        ahead = self.explorers.clock_skew.time_ahead(asked_at, began_s)
        return Look(row.id, mempool, asked_at, ahead)

    def _note_failed_look(self, row: Invoice, error: Exception, report: Report) -> None:
        """Logs, reports and stores that a look for the invoice has failed."""
        log.warning("invoice %s could not be looked for: %s", row.id, reason_of(error))
        now = self.now()
        (invoice,) = watched_invoices(self.db, self.settings, now, [row])
        if is_waiting(invoice, now):
            report.unreached.append(row.id)
        else:
            report.put_off += 1
        self.db.run(mempool_watch.FAILED, id=row.id, at=to_ms(now))

    def _ends_at(self, look: Look, report: Report) -> datetime | None:
        """Returns the time up to which deadlines count as passed; None if none does.

        Both the tip and the mempool must have been requested after a deadline, before
        its invoice may expire.
        """
        tip_at = report.ends_before
        if tip_at is None:
            return None
        if not report.is_agreed:
            tip_at -= HELD_AT_MOST
        return min(look.asked_at, tip_at) - look.ahead

    def _apply(self, look: Look, report: Report) -> None:
        """Stores the changes that the mempool's response causes in the invoice."""
        scan = Scan(
            asked_at=look.asked_at,
            tip_height=blocks.tip_height(self.db) or 0,
            waiting=look.mempool.outputs,
            absent_is_gone=report.is_caught_up,
            is_cut=not look.mempool.is_whole or self._lags(look),
            ends_at=self._ends_at(look, report),
            explorer=look.mempool.host,
        )
        report.looked_at += 1
        id = look.invoice_id
        now = self.now()
        failed_ids = try_apply(self.db, self.settings, {id: scan}, now, report)
        if failed_ids:
            self.db.run(mempool_watch.FAILED, id=id, at=to_ms(now))
            return
        looked_at = scan.asked_at - look.ahead
        self.db.run(mempool_watch.LOOKED, id=id, at=to_ms(looked_at))

    def _lags(self, look: Look) -> bool:
        """True if the explorer may not know yet an output that was announced recently.

        Explorers need some time (the lag) until they know an announced transaction.
        """
        lag = self.sources.lag
        if not lag:
            return False
        since = to_ms(look.asked_at - lag)
        missing = missing_outputs(self.db, look)
        return any(output.first_seen_ms > since for output in missing)

    def _compare_clocks(self, report: Report) -> None:
        """Reports how far this machine's clock is ahead of the sources' clocks."""
        ahead = self._ahead(self.now())
        report.clock_ahead_s = ahead // timedelta(seconds=1)
        if ahead:
            log.error(
                "this machine's clock is %d s ahead of the sources' clocks: invoices end by those,"
                " and nothing is erased; %s",
                report.clock_ahead_s,
                SET_CLOCK,
            )

    def finish(self, report: Report) -> None:
        """Stores the run's time and totals, runs scheduled work, and deletes old rows.

        Call it after a run for all invoices, not after one for chosen invoices.
        """
        now = self.now()
        listens = ""
        if self.hear:
            listens = "yes"
        self.record.note(self.db, report, listens, now)
        renew_and_erase(self.db, self.settings, report, self.mark(), now)
        (failed_count,) = self.db.get(part_work.FAILED_COUNT)
        report.parts_behind = failed_count
