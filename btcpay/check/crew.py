"""Scans several addresses at once, and applies what each scan has shown."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime

from peewee import PeeweeException

from btcpay.check.apply import apply
from btcpay.check.line import Line
from btcpay.check.report import Report
from btcpay.check.scan import ScanJob, Scanner, scan_job
from btcpay.errors import ExplorerError, OutOfQuota
from btcpay.settlement.values import Scan
from btcpay.times import to_ms
from storage.database import Database
from storage.queries import invoices

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Crew:
    """`in_flight` threads that scan, and this one, which applies; `now` reads the wall clock."""

    db: Database
    scanner: Scanner
    now: Callable[[], datetime]
    in_flight: int
    tip_height: int

    @property
    def most(self) -> int:
        """How many scans are under way: twice as many as threads, so that none has to wait."""
        return 2 * self.in_flight

    def scan_all(self, line: Line, report: Report) -> None:
        """Scans the addresses in the line, and applies each scan when it is there."""
        under_way = dict[Future[Scan], ScanJob]()
        with ThreadPoolExecutor(self.in_flight) as pool:
            try:
                done: list[tuple[ScanJob, Future[Scan]]] = []
                while True:
                    more = line.take(len(under_way))
                    self._apply_all(done, more, report)
                    for invoice_id in more:
                        with self._edge(invoice_id, report):
                            job = scan_job(self.db, invoice_id, self.tip_height)
                            under_way[pool.submit(self._scan, job)] = job
                    if not more and not under_way:
                        return
                    ended = wait(under_way, return_when=FIRST_COMPLETED).done
                    done = [(under_way.pop(future), future) for future in ended]
            finally:
                pool.shutdown(cancel_futures=True)

    def _scan(self, job: ScanJob) -> Scan:
        """In a thread of the pool; closes the connection with which its calls may be counted."""
        try:
            return self.scanner.scan(job, self.now)
        finally:
            self.db.close()

    def _apply_all(
        self, done: Sequence[tuple[ScanJob, "Future[Scan]"]], more: Sequence[str], report: Report
    ) -> None:
        """One commit for what has ended and what begins: each commit waits for the disk."""
        batch = Report()
        try:
            with self.db.batch():
                for job, future in done:
                    with self._edge(job.row["id"], batch):
                        self._apply(job, future.result(), batch)
                for invoice_id in more:
                    self.db.run(invoices.BEGIN, id=invoice_id, at=to_ms(self.now()))
        except PeeweeException as error:
            log.error("%d looks could not be stored: %s", len(done), error)
            report.failed += [job.row["id"] for job, _ in done]
        else:
            report.add(batch)

    def _apply(self, job: ScanJob, scan: Scan, report: Report) -> None:
        """Applies a scan and reports what came of it."""
        invoice_id = job.row["id"]
        verdict = apply(self.db, self.scanner.settings, job.row, scan, self.now())
        report.scanned += 1
        report.proven = report.proven or bool(scan.proofs)
        if scan.unproven:
            (report.unreached if scan.short else report.failed).append(invoice_id)
        if verdict and verdict.status != job.row["status"]:
            report.changed[invoice_id] = verdict.status

    @contextlib.contextmanager
    def _edge(self, invoice_id: str, report: Report) -> Iterator[None]:
        """Where what goes wrong with one address ends; the next is somebody's money too."""
        try:
            yield
        except OutOfQuota:
            report.unreached.append(invoice_id)
            self.db.run(invoices.NOT_LOOKED, id=invoice_id)
        except ExplorerError as error:
            log.warning("invoice %s could not be looked at: %s", invoice_id, error)
            report.failed.append(invoice_id)
            self.db.run(invoices.FAILED, id=invoice_id, at=to_ms(self.now()))
        except Exception:  # noqa: BLE001 - the edge of the loop over addresses
            log.exception("invoice %s could not be looked at", invoice_id)
            report.failed.append(invoice_id)
