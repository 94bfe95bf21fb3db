"""The cron run: plans which addresses are due, has them scanned, and reports what it did."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.check.claims import scan_what_others_left, share
from btcpay.check.crew import Crew
from btcpay.check.line import Line, Todo
from btcpay.check.plan import plan
from btcpay.check.reorg import follow
from btcpay.check.report import Report
from btcpay.check.scan import Scanner
from btcpay.check.watchlist import note_probes, tip_of, watchlist_of
from btcpay.clock_skew import REMEDY
from btcpay.errors import ExplorerError, OutOfQuota
from btcpay.explorers.allowance import Allowance
from btcpay.explorers.pool import Explorers
from btcpay.invoices.retention import erase_emails
from btcpay.price import Prices
from btcpay.settings import Settings
from btcpay.times import to_ms
from storage.database import Database
from storage.queries import idempotency, meta, tallies

log = logging.getLogger(__name__)

Progress = Callable[[Sequence[str]], AbstractContextManager[Iterable[str]]]


@dataclass(frozen=True)
class Checker:
    """What a check needs; `now` reads the wall clock, `in_flight` calls go out at once."""

    db: Database
    settings: Settings
    explorers: Explorers
    prices: Prices
    now: Callable[[], datetime]
    in_flight: int = 4

    def run(
        self, ids: Sequence[str] | None = None, progress: Progress = contextlib.nullcontext
    ) -> Report:
        """Scans the addresses of these invoices, or those that are due and within the budget.

        One address that cannot be asked, or whose answer cannot be stored, never stops the run.
        """
        report, began_ns = Report(), time.monotonic_ns()
        allowance = self.explorers.allowance()
        try:
            if ids is None and self._is_idle(allowance, report):
                return report
            self._run(ids, allowance, progress, report)
        finally:
            self.explorers.close()
            self._compare_clocks(report)
            report.calls = self.explorers.calls
            report.took_ms = (time.monotonic_ns() - began_ns) // 1_000_000
        return report

    def _is_idle(self, allowance: Allowance, report: Report) -> bool:
        """Whether the budget is low and no scan is due: then not even the tip is asked for."""
        return allowance.is_low and not self._planned(report, allowance, spend=False).scans

    def _run(
        self, ids: Sequence[str] | None, allowance: Allowance, progress: Progress, report: Report
    ) -> None:
        try:
            tip_height = self._follow(allowance)
        except ExplorerError as error:
            log.error("the check could not ask for the tip: %s", error)
            report.tip_failed = not isinstance(error, OutOfQuota)
            missed = self._planned(report, allowance, spend=False).scans if ids is None else ids
            (report.failed if report.tip_failed else report.unreached).extend(missed)
            return
        report.answered = True
        if ids is None:
            todo = self._planned(report, allowance, spend=True)
        else:
            todo = Todo(dict.fromkeys(ids, 0))
        is_shared = ids is None and self.db.is_server  # else all is this run's own
        crew = self._crew(tip_height)

        def scan(some: Iterable[str]) -> None:
            several = share(self.db, some, todo.scans, self.now, few=crew.most)
            with several if is_shared else contextlib.nullcontext(some) as mine:
                crew.scan_all(Line(mine, todo.alone, crew.most), report)

        with progress(list(todo.scans)) as shown:
            scan(shown)
        if is_shared:
            scan_what_others_left(self.db, todo.scans, report, scan)
        self._note_height(report)

    def _crew(self, tip_height: int) -> Crew:
        left = self.explorers.allowance().left
        scanner = Scanner(self.settings, self.explorers, self.prices, left)
        return Crew(self.db, scanner, self.now, self.in_flight, tip_height)

    def _follow(self, allowance: Allowance) -> int:
        return follow(self.db, self.explorers, self.settings.network, self.now(), allowance.is_low)

    def _planned(self, report: Report, allowance: Allowance, spend: bool) -> Todo:
        """What this run scans; reports what it puts off, and notes what it will `spend`."""
        now = self.now()
        watchlist = watchlist_of(self.db, self.settings, now)
        planned = plan(watchlist.addresses, tip_of(self.db, now), allowance, now)
        report.unreached, report.put_off = planned.unreached, planned.put_off
        if spend:
            self.explorers.note_background(planned.background_calls)
            note_probes(self.db, watchlist, planned.ids, now)
        return watchlist.todo(planned.ids)

    def _note_height(self, report: Report) -> None:
        """After new payments: how high their chain is, as evidence for later."""
        if report.proven:
            try:
                self._follow(self.explorers.allowance())
            except ExplorerError as error:
                log.warning("the height of the chain could not be proven: %s", error)

    def _compare_clocks(self, report: Report) -> None:
        ahead = self.explorers.clock_skew.ahead(self.now(), time.monotonic())
        report.clock_ahead_s = ahead // timedelta(seconds=1)
        if ahead:
            log.error(
                "this machine's clock is %d s ahead of the explorers': invoices end by theirs, and"
                " nothing is erased; %s",
                report.clock_ahead_s,
                REMEDY,
            )

    def finish(self, report: Report) -> None:
        """After a run over all that is due: notes its time and totals, forgets what is too old."""
        now = self.now()
        outcome = "complete" if report.complete else "incomplete"
        with self.db.write():
            if report.complete:
                meta.put_time(self.db, meta.Key.CHECKED_AT, now)
            for name, label, total in [
                ("checks", outcome, 1),
                ("check_ms", "", report.took_ms),
                *self.explorers.tallies(),
            ]:
                self.db.run(tallies.ADD, name=name, label=label, total=total)
        # What is erased never comes back, so an explorer must confirm the time first: after a start
        # without a network the clock may be years off.
        if report.answered and not report.clock_ahead_s:
            ttl = timedelta(hours=self.settings.idempotency_ttl_h)
            self.db.run(idempotency.FORGET, before=to_ms(now - ttl))
            erase_emails(self.db, self.settings.email_retention_days, now)
