"""The cron run: looks at the addresses that are due, several at once, and applies what follows."""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from btcpay.applying import apply
from btcpay.budget import Purse
from btcpay.errors import ExplorerError, OutOfBudget
from btcpay.explorer import Explorers
from btcpay.instants import to_ms
from btcpay.look import Looker, Subject, subject_of
from btcpay.price import Prices
from btcpay.reorganisation import follow
from btcpay.schedule import plan
from btcpay.settings import Settings
from btcpay.sharing import share
from btcpay.sightings import Look
from btcpay.turns import field_of, note_probes, tip_of
from storage import idempotency, meta
from storage.database import Database

log = logging.getLogger(__name__)

Progress = Callable[[Sequence[str]], AbstractContextManager[Iterable[str]]]


@dataclass
class Run:
    """What a run did: addresses looked at, those that could not be, invoices with a new status.

    `unreached`: ids that were urgent and beyond the budget; `put_off`: how many others wait for
    their turn. `proven`: whether a payment was proven. What another runner looks at meanwhile is
    in that one's report.
    """

    looked_at: int = 0
    failed: list[str] = field(default_factory=list)
    changed: dict[str, str] = field(default_factory=dict)
    unreached: list[str] = field(default_factory=list)
    put_off: int = 0
    calls: int = 0
    tip_failed: bool = False
    proven: bool = False

    @property
    def complete(self) -> bool:
        """Whether every due address was looked at."""
        return not self.failed and not self.unreached and not self.tip_failed


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
        run = Run()
        purse = self.explorers.purse()
        try:
            tip_height = follow(self.db, self.explorers, self.settings.network, self.now())
        except ExplorerError as error:
            log.error("the check could not ask for the tip: %s", error)
            run.tip_failed = not isinstance(error, OutOfBudget)
            missed = run.failed if run.tip_failed else run.unreached
            missed.extend(self._planned(run, purse, spend=False) if ids is None else ids)
        else:
            looks = self._planned(run, purse, spend=True) if ids is None else dict.fromkeys(ids, 0)
            with progress(list(looks)) as shown, self._shared(shown, looks, ids) as mine:
                self._look_at_all(mine, tip_height, run)
            self._note_height(run)
        self.explorers.close()
        run.calls = self.explorers.calls
        return run

    def _shared(
        self, shown: Iterable[str], looks: dict[str, int], ids: Sequence[str] | None
    ) -> AbstractContextManager[Iterable[str]]:
        """What of it is this run's own; with SQLite all, and what is named by hand."""
        if ids is not None or not self.db.is_server:
            return contextlib.nullcontext(shown)
        return share(self.db, shown, looks, self.now, few=2 * self.in_flight)

    def _planned(self, run: Run, purse: Purse, spend: bool) -> dict[str, int]:
        """What this run looks at, in order, and how often each was looked at before.

        Notes in `run` what it puts off, and what it will `spend`.
        """
        now = self.now()
        field = field_of(self.db, self.settings, now)
        planned = plan(field.addresses, tip_of(self.db, now), purse, now)
        run.unreached, run.put_off = planned.unreached, planned.put_off
        if spend:
            self.explorers.sweep(planned.swept)
            note_probes(self.db, field, planned.looks, now)
        looks = {address.id: address.looks for address in field.addresses}
        return {invoice_id: looks[invoice_id] for invoice_id in planned.looks}

    def _look_at_all(self, ids: Iterable[str], tip_height: int, run: Run) -> None:
        """Gathers in `in_flight` threads, and applies in this one what is there."""
        looker = Looker(self.settings, self.explorers, self.prices)
        todo, under_way = iter(ids), dict[Future[Look], Subject]()
        with ThreadPoolExecutor(self.in_flight) as pool:
            try:
                while True:
                    # Twice as many as threads, so that none of them waits for this one.
                    more = list(islice(todo, 2 * self.in_flight - len(under_way)))
                    for invoice_id in more:
                        with _edge(invoice_id, run):
                            subject = subject_of(self.db, invoice_id, tip_height)
                            under_way[pool.submit(looker.look, subject, self.now)] = subject
                    if not more and not under_way:
                        return
                    done = wait(under_way, return_when=FIRST_COMPLETED).done
                    # One commit for what has come meanwhile: each waits for the disk.
                    with self.db.batch():
                        for future in done:
                            subject = under_way.pop(future)
                            with _edge(subject.row["id"], run):
                                self._settle(subject, future.result(), run)
            finally:
                pool.shutdown(cancel_futures=True)

    def _settle(self, subject: Subject, look: Look, run: Run) -> None:
        """Applies a look and notes what it did."""
        invoice_id = subject.row["id"]
        verdict = apply(self.db, self.settings, subject.row, look, self.now())
        run.looked_at += 1
        run.proven = run.proven or bool(look.proofs)
        if look.unproven:
            run.failed.append(invoice_id)
        if verdict and verdict.status != subject.row["status"]:
            run.changed[invoice_id] = verdict.status

    def _note_height(self, run: Run) -> None:
        """After new payments: how high the chain is that they are on, as evidence for later."""
        if run.proven:
            try:
                follow(self.db, self.explorers, self.settings.network, self.now())
            except ExplorerError as error:
                log.warning("the height of the chain could not be proven: %s", error)

    def finish(self, run: Run) -> None:
        """After a run over all that is due: notes its time, forgets what is too old."""
        now = self.now()
        if run.complete:
            meta.put(self.db, "checked_at", str(to_ms(now)))
        ttl = timedelta(hours=self.settings.idempotency_ttl_h)
        self.db.run(idempotency.FORGET, before=to_ms(now - ttl))


@contextlib.contextmanager
def _edge(invoice_id: str, run: Run) -> Iterator[None]:
    """Where what goes wrong with one address ends."""
    try:
        yield
    except OutOfBudget:
        run.unreached.append(invoice_id)
    except ExplorerError as error:
        log.warning("invoice %s could not be looked at: %s", invoice_id, error)
        run.failed.append(invoice_id)
    except Exception:  # noqa: BLE001 - the loop's edge: the next address is somebody's money too
        log.exception("invoice %s could not be looked at", invoice_id)
        run.failed.append(invoice_id)
