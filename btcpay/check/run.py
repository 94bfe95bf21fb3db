"""The cron run: looks at the addresses that are due, several at once, and applies what follows."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta

from peewee import PeeweeException

from btcpay.check.apply import apply
from btcpay.check.claims import look_at_what_others_left, share
from btcpay.check.line import Line, Todo
from btcpay.check.plan import plan
from btcpay.check.reorg import follow
from btcpay.check.report import Run
from btcpay.check.scan import Looker, Subject, subject_of
from btcpay.check.sightings import Look
from btcpay.check.watchlist import field_of, note_probes, tip_of
from btcpay.clock_skew import REMEDY
from btcpay.errors import ExplorerError, OutOfBudget
from btcpay.explorers.pool import Explorers
from btcpay.explorers.quota import Purse
from btcpay.invoices.retention import erase_emails
from btcpay.price import Prices
from btcpay.settings import Settings
from btcpay.times import to_ms
from storage.database import Database
from storage.queries import idempotency, invoices, meta, tallies

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
    ) -> Run:
        """Looks at the addresses of these invoices, or at those that are due and in the budget.

        One address that cannot be asked, or whose answer cannot be stored, never stops the run.
        """
        run, began_ns = Run(), time.monotonic_ns()
        purse = self.explorers.purse()
        try:
            if ids is None and self._is_idle(purse, run):
                return run
            self._run(ids, purse, progress, run)
        finally:
            self.explorers.close()
            self._compare_clocks(run)
            run.calls = self.explorers.calls
            run.took_ms = (time.monotonic_ns() - began_ns) // 1_000_000
        return run

    def _is_idle(self, purse: Purse, run: Run) -> bool:
        """Whether the budget is low and nothing to be looked at: then not even the tip is asked."""
        return purse.is_low and not self._planned(run, purse, spend=False).looks

    def _run(self, ids: Sequence[str] | None, purse: Purse, progress: Progress, run: Run) -> None:
        try:
            tip_height = self._follow(purse)
        except ExplorerError as error:
            log.error("the check could not ask for the tip: %s", error)
            run.tip_failed = not isinstance(error, OutOfBudget)
            missed = self._planned(run, purse, spend=False).looks if ids is None else ids
            (run.failed if run.tip_failed else run.unreached).extend(missed)
            return
        run.answered = True
        todo = Todo(dict.fromkeys(ids, 0)) if ids is not None else self._planned(run, purse, True)
        is_shared = ids is None and self.db.is_server  # else all is this run's own

        def look_at(some: Iterable[str]) -> None:
            several = share(self.db, some, todo.looks, self.now, few=2 * self.in_flight)
            with several if is_shared else contextlib.nullcontext(some) as mine:
                self._look_at_all(Line(mine, todo.alone, 2 * self.in_flight), tip_height, run)

        with progress(list(todo.looks)) as shown:
            look_at(shown)
        if is_shared:
            look_at_what_others_left(self.db, todo.looks, run, look_at)
        self._note_height(run)

    def _follow(self, purse: Purse) -> int:
        return follow(self.db, self.explorers, self.settings.network, self.now(), purse.is_low)

    def _planned(self, run: Run, purse: Purse, spend: bool) -> Todo:
        """What this run looks at; notes in `run` what it puts off, and what it will `spend`."""
        now = self.now()
        field = field_of(self.db, self.settings, now)
        planned = plan(field.addresses, tip_of(self.db, now), purse, now)
        run.unreached, run.put_off = planned.unreached, planned.put_off
        if spend:
            self.explorers.sweep(planned.swept)
            note_probes(self.db, field, planned.looks, now)
        return field.todo(planned.looks)

    def _look_at_all(self, line: Line, tip_height: int, run: Run) -> None:
        """Gathers in `in_flight` threads, and applies in this one what is there.

        Twice as many as threads are under way, so that none of them waits for this one.
        """
        looker = Looker(self.settings, self.explorers, self.prices, self.explorers.purse().left)
        under_way = dict[Future[Look], Subject]()
        with ThreadPoolExecutor(self.in_flight) as pool:
            try:
                done: list[tuple[Subject, Future[Look]]] = []
                while True:
                    more = line.take(len(under_way))
                    self._settle_all(done, more, run)
                    for invoice_id in more:
                        with self._edge(invoice_id, run):
                            subject = subject_of(self.db, invoice_id, tip_height)
                            under_way[pool.submit(self._look, looker, subject)] = subject
                    if not more and not under_way:
                        return
                    ended = wait(under_way, return_when=FIRST_COMPLETED).done
                    done = [(under_way.pop(future), future) for future in ended]
            finally:
                pool.shutdown(cancel_futures=True)

    def _look(self, looker: Looker, subject: Subject) -> Look:
        """In a thread of the pool; closes the connection with which its calls may be counted."""
        try:
            return looker.look(subject, self.now)
        finally:
            self.db.close()

    def _settle_all(
        self, looks: Sequence[tuple[Subject, "Future[Look]"]], more: Sequence[str], run: Run
    ) -> None:
        """One commit for what has come meanwhile and for what is begun: each waits for the disk."""
        batch = Run()
        try:
            with self.db.batch():
                for subject, future in looks:
                    with self._edge(subject.row["id"], batch):
                        self._settle(subject, future.result(), batch)
                for invoice_id in more:
                    self.db.run(invoices.BEGIN, id=invoice_id, at=to_ms(self.now()))
        except PeeweeException as error:
            log.error("%d looks could not be stored: %s", len(looks), error)
            run.failed += [subject.row["id"] for subject, _ in looks]
        else:
            run.add(batch)

    def _settle(self, subject: Subject, look: Look, run: Run) -> None:
        """Applies a look and notes what it did."""
        invoice_id = subject.row["id"]
        verdict = apply(self.db, self.settings, subject.row, look, self.now())
        run.looked_at += 1
        run.proven = run.proven or bool(look.proofs)
        if look.unproven:
            (run.unreached if look.short else run.failed).append(invoice_id)
        if verdict and verdict.status != subject.row["status"]:
            run.changed[invoice_id] = verdict.status

    @contextlib.contextmanager
    def _edge(self, invoice_id: str, run: Run) -> Iterator[None]:
        """Where what goes wrong with one address ends; the next is somebody's money too."""
        try:
            yield
        except OutOfBudget:
            run.unreached.append(invoice_id)
            self.db.run(invoices.NOT_LOOKED, id=invoice_id)
        except ExplorerError as error:
            log.warning("invoice %s could not be looked at: %s", invoice_id, error)
            run.failed.append(invoice_id)
            self.db.run(invoices.FAILED, id=invoice_id, at=to_ms(self.now()))
        except Exception:  # noqa: BLE001 - the edge of the loop over addresses
            log.exception("invoice %s could not be looked at", invoice_id)
            run.failed.append(invoice_id)

    def _note_height(self, run: Run) -> None:
        """After new payments: how high the chain is that they are on, as evidence for later."""
        if run.proven:
            try:
                self._follow(self.explorers.purse())
            except ExplorerError as error:
                log.warning("the height of the chain could not be proven: %s", error)

    def _compare_clocks(self, run: Run) -> None:
        ahead = self.explorers.witness.ahead(self.now(), time.monotonic())
        run.clock_ahead_s = ahead // timedelta(seconds=1)
        if ahead:
            log.error(
                "this machine's clock is %d s ahead of the explorers': invoices end by theirs, and"
                " nothing is erased; %s",
                run.clock_ahead_s,
                REMEDY,
            )

    def finish(self, run: Run) -> None:
        """After a run over all that is due: notes time and totals, forgets what is too old."""
        now = self.now()
        outcome = "complete" if run.complete else "incomplete"
        with self.db.write():
            if run.complete:
                meta.put_time(self.db, meta.Key.CHECKED_AT, now)
            for name, label, total in [
                ("checks", outcome, 1),
                ("check_ms", "", run.took_ms),
                *self.explorers.tallies(),
            ]:
                self.db.run(tallies.ADD, name=name, label=label, total=total)
        # What is erased never comes back, and can wait until somebody has confirmed the time: after
        # a start without a network the clock may be years off.
        if run.answered and not run.clock_ahead_s:
            ttl = timedelta(hours=self.settings.idempotency_ttl_h)
            self.db.run(idempotency.FORGET, before=to_ms(now - ttl))
            erase_emails(self.db, self.settings.email_retention_days, now)
