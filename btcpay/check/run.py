"""The cron run: follows the chain, reads its blocks, asks the mempool for those who wait."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from btcpay.chain.belief import judge_clock
from btcpay.chain.explorers.pool import Explorers
from btcpay.chain.pool import Pool
from btcpay.chain.sources import BlockSource
from btcpay.check.apply import try_apply
from btcpay.check.catch_up import CatchUp
from btcpay.check.mempool import Look, missing_outputs, watched_invoices
from btcpay.check.parts import run_parts
from btcpay.check.plan import CLOSED_LATELY, NEVER, is_waiting, plan
from btcpay.check.report import Report
from btcpay.invoices.emails import erase_emails
from btcpay.invoices.part_work import reason_of
from btcpay.notify.events import delete_old_events
from btcpay.settlement.merge import HISTORY_AFTER
from btcpay.settlement.settle import HELD_AT_MOST
from btcpay.settlement.values import Scan
from btcpay.values.errors import ExplorerError, OutOfQuota
from btcpay.values.times import SET_CLOCK, to_ms
from storage.models import Invoice
from storage.queries import blocks, idempotency, invoices, meta, part_work, payments
from storage.queries.lists import mempool_watch
from storage.queries.meta import Key
from storage.queries.totals import tallies

log = logging.getLogger(__name__)

MOST_RUN_S = 300  # a run that takes longer hangs


@dataclass(frozen=True, kw_only=True)
class Checker(CatchUp):
    """A check with its means; `in_flight` looks at the mempool go out at once.

    The `sources` of headers and blocks may be the `explorers`. `hear` applies announcements.
    """

    explorers: Explorers
    in_flight: int = 4
    hear: Callable[[Report], None] | None = None

    def run(self, ids: Sequence[str] | None = None) -> Report:
        """Brings every invoice up to date, and asks the mempool for those who wait, or for `ids`.

        One invoice's failure never stops the run.
        """
        report = Report(began_at=self.now())
        began_ns = time.monotonic_ns()
        with self._asking(report):
            self._run(ids, report)
        self._compare_clocks(report)
        report.took_ms = (time.monotonic_ns() - began_ns) // 1_000_000
        return report

    def _run(self, ids: Sequence[str] | None, report: Report) -> None:
        is_known = self.follow(report)
        self.settle_deep(report)
        if self.hear:
            self._hear(self.hear, report)  # before anything ends
        if not is_known:
            return
        if not self.settings.explorers:
            self.end_by_blocks(report)
            return
        if ids is None:
            now = self.now()
            gone_after = self.settings.network.gone_after
            watched = watched_invoices(self.db, self.settings, now)
            allowance = self.explorers.allowance()
            found = plan(
                watched, gone_after, allowance, now, report.ends_before or NEVER
            )
            ids, report.unreached, report.put_off = found
        self._ask(ids, report)

    def _hear(self, hear: Callable[[Report], None], report: Report) -> None:
        """Applies what was announced: any stranger's, so it ends no run."""
        try:
            hear(report)
        except MemoryError as error:
            log.error("announced payments are not shown: %s", reason_of(error))  # noqa: TRY400

    def look_again(self, report: Report) -> bool:
        """After a run, asks for pages that are due by now; True while somebody waits at one."""
        now = self.now()
        may_ask = report.answered and self.settings.explorers
        rows = self.db.rows(mempool_watch.ASKED, after=to_ms(now - CLOSED_LATELY))
        asked = watched_invoices(self.db, self.settings, now, rows if may_ask else ())
        gone_after = self.settings.network.gone_after
        allowance = self.explorers.allowance()
        if ids := plan(
            asked, gone_after, allowance, now, others_wait=report.put_off > 0
        ).ids:
            later = replace(
                report, failed=[], unreached=[]
            )  # a later look fails no run
            with self._asking(report):
                self._ask(ids, later)
            report.looked_at = later.looked_at
            report.blocks_read = later.blocks_read
        return any(is_waiting(one, now) for one in asked)

    @contextmanager
    def _asking(self, report: Report) -> Iterator[None]:
        """Bounds the time for questions; notes at the end their costs, and the good sources."""
        pools: set[Pool[BlockSource]] = {self.explorers, self.sources}
        for pool in pools:
            pool.end_within(MOST_RUN_S)
        try:
            yield
        finally:
            for pool in pools:
                pool.close()
                pool.note(self.db, self.settings, self.now())
        asked = [source for pool in pools for source in pool.all]
        report.calls = sum(source.calls for source in asked)
        report.read_bytes = sum(source.bytes_read for source in asked)

    def _ask(self, ids: Sequence[str], report: Report) -> None:
        looks = self._look(ids, report)
        if any(missing_outputs(self.db, look) for look in looks):
            self.follow(report)  # a new block may have what left the mempool
        for look in looks:
            self._apply(look, report)

    def _look(self, ids: Sequence[str], report: Report) -> list[Look]:
        """The looks that were answered; `in_flight` are asked at once, without a database."""
        rows = [self.db.only(invoices.WHOLE, id=one) for one in ids]
        looks = []
        with ThreadPoolExecutor(self.in_flight) as pool:
            answers = [pool.submit(self._answer, row) for row in rows]
        for row, answer in zip(rows, answers, strict=True):
            try:
                looks.append(answer.result())
            except OutOfQuota:
                report.put_off += 1
            except (
                ExplorerError,
                MemoryError,
            ) as error:  # no stranger's answer ends the run
                log.warning(
                    "invoice %s could not be looked for: %s", row.id, reason_of(error)
                )
                now = self.now()
                (watched,) = watched_invoices(self.db, self.settings, now, [row])
                if is_waiting(watched, now):
                    report.unreached.append(row.id)
                else:
                    report.put_off += 1
                self.db.run(mempool_watch.FAILED, id=row.id, at=to_ms(now))
        return looks

    def _answer(self, row: Invoice) -> Look:
        at = self.now()
        read_s = time.monotonic()
        mempool = self.explorers.mempool(row.deposit_address, bytes.fromhex(row.script))
        return Look(
            row.id, mempool, at, self.explorers.clock_skew.time_ahead(at, read_s)
        )

    def _apply(self, look: Look, report: Report) -> None:
        tip_at = report.ends_before
        if tip_at and not report.is_agreed:
            tip_at -= HELD_AT_MOST
        scan = Scan(
            asked_at=look.asked_at,
            tip_height=blocks.tip_height(self.db) or 0,
            waiting=look.mempool.outputs,
            absent_is_gone=report.is_caught_up,
            is_cut=not look.mempool.is_whole or self._lags(look),
            ends_at=tip_at
            and min(look.asked_at, tip_at) - look.ahead,  # both were asked since
            explorer=look.mempool.host,
        )
        report.looked_at += 1
        id = look.invoice_id
        now = self.now()
        if try_apply(self.db, self.settings, {id: scan}, now, report):
            self.db.run(mempool_watch.FAILED, id=id, at=to_ms(now))
        else:
            self.db.run(
                mempool_watch.LOOKED, id=id, at=to_ms(scan.asked_at - look.ahead)
            )

    def _lags(self, look: Look) -> bool:
        """True if it lacks money announced so lately that its explorer may not know of it yet."""
        lag = self.sources.lag
        since = to_ms(look.asked_at - lag)
        return bool(lag) and any(
            row.first_seen_at > since for row in missing_outputs(self.db, look)
        )

    def _compare_clocks(self, report: Report) -> None:
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
        """After a run over everything due, notes its time and totals, and deletes old rows."""
        now = self.now()
        outcome = "complete" if report.complete else "incomplete"
        with self.db.write():
            if report.answered:
                meta.put(self.db, Key.PREVIEWS_LATE, str(len(report.unreached)))
            meta.put(self.db, Key.LISTENS, "yes" if self.hear else "")
            meta.put_time(self.db, Key.RAN_AT, report.began_at or now)
            if report.complete:
                meta.put_time(self.db, Key.CHECKED_AT, now)
            for name, label, total in (
                ("checks", outcome, 1),
                ("check_ms", "", report.took_ms),
                ("blocks", "", report.blocks_read),
            ):
                self.db.run(tallies.ADD, name=name, label=label, total=total)
        # What is made or erased by the clock cannot be taken back, so the sources must confirm the
        # time first: after a start without a network the clock may be years off.
        if report.answered and not report.clock_ahead_s and not report.stuck:
            self._take_turns_in_time(report, now)
        report.parts_behind = self.db.only(part_work.FAILED_COUNT)[0]

    def _take_turns_in_time(self, report: Report, now: datetime) -> None:
        network = self.settings.network
        mark = self.mark()
        report.doubt = judge_clock(self.db, network, now, mark, report.is_agreed)
        if report.doubt:
            log.error(
                "nothing is renewed or erased until the time is confirmed: %s",
                report.doubt,
            )
        else:
            self._take_turns(now)

    def _take_turns(self, now: datetime) -> None:
        """Does by the clock what cannot be taken back: call it only while that is believed."""
        ttl = timedelta(hours=self.settings.idempotency_ttl_h)
        self.db.run(idempotency.FORGET, before=to_ms(now - ttl))
        erase_emails(self.db, self.settings.email_retention_days, now)
        self.db.run(payments.FORGET_INPUTS, before=to_ms(now - HISTORY_AFTER))
        delete_old_events(self.db, now)
        run_parts(self.db, self.settings, now)
