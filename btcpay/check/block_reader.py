"""Reads blocks: each is fetched, proven, and applied in one transaction, once."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

from btcpay.chain.pool import Pool
from btcpay.chain.progress import KEPT_PART, hours_to_read
from btcpay.chain.sources import BlockSource, fetch_proven_block
from btcpay.check.apply import try_apply
from btcpay.check.facts import (
    facts_of,
    is_late,
    paid_invoices,
    read_spends_again,
    receipt_prices,
    spends_of,
)
from btcpay.check.parts import (
    blocks_due,
    concerns_of,
    forget_others,
    plan_block,
    work_on_block,
)
from btcpay.check.report import Report
from btcpay.http.deadline import run_in_thread
from btcpay.invoices.part_work import Work, note_failure
from btcpay.prices.price import Prices
from btcpay.proofs.block import ProvenBlock
from btcpay.settings.settings import Settings
from btcpay.settlement.values import Scan
from btcpay.values.errors import ExplorerError, OutOfQuota
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import Block
from storage.queries import blocks, meta, part_work
from storage.queries.pauses import LONGEST_MS
from storage.statement import Typed

log = logging.getLogger(__name__)

# Afterwards the mempool is asked for those who wait; the next run goes on.
MOST_S = 40
MOST_PASSED = (
    3  # blocks in a row that could not be read; the fault is then not the blocks'
)
MOST_WORKED_OFF = (
    10  # blocks that a run asks for again, since a part could not do its work
)
# A block that no source could show is passed over for a minute, later for as long as its age, up to
# an hour. A new block is asked for in each run: its payments must not wait because the explorers
# were away for a moment.
NEW = timedelta(minutes=10)
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(milliseconds=LONGEST_MS)
Fetched = tuple[ProvenBlock, str]


@dataclass(frozen=True)
class BlockReader:
    """`now` reads the wall clock."""

    db: Database
    settings: Settings
    sources: Pool[BlockSource]
    prices: Prices
    now: Callable[[], datetime]

    def read_all(self, report: Report) -> None:
        """Reads blocks while there are any, and time and calls for it. Raises ExplorerError.

        The newest first, so that a new payment never waits for history; then the oldest. The
        result does not depend on the order. After a block that no source could show, the others are
        read, the newest first: old ones may be gone everywhere.
        """
        until_s = time.monotonic() + MOST_S
        passed: set[str] = set()
        errors: list[ExplorerError] = []
        failed_in_a_row = 0
        order = blocks.NEWEST
        ahead = 1
        fetched = dict[str, Future[Fetched]]()
        try:
            while failed_in_a_row < MOST_PASSED and (
                rows := self._due(order, passed, ahead)
            ):
                row = rows[0]
                if time.monotonic() > until_s or not self._may_read(row):
                    break
                fetched = {
                    row.hash: fetched.get(row.hash)
                    or self._fetch(row, round_robin=ahead > 1)
                    for row in rows
                }
                try:
                    if not self._read(row, report, fetched.pop(row.hash)):
                        passed.add(row.hash)
                    failed_in_a_row = 0
                except OutOfQuota as error:
                    log.warning("not every block is read: %s", error)
                    break
                except ExplorerError as error:
                    errors.append(error)
                    passed.add(row.hash)
                    self._pass_over(row)
                    failed_in_a_row += 1
                except Exception as error:  # noqa: BLE001 - one stranger's block, and all others
                    self._set_aside(row, error, report)
                    passed.add(row.hash)
                    failed_in_a_row += 1
                order = blocks.NEWEST if passed else blocks.OLDEST
                ahead = self.sources.concurrency
        finally:
            report.blocks_behind = self.db.only(blocks.UNREAD)[0]
            per_hour = self.settings.explorer_calls_per_hour
            report.hours_behind = hours_to_read(report.blocks_behind, per_hour)
        if errors:
            raise errors[0]

    def _due(
        self, order: Typed[Block], passed: Collection[str], most: int
    ) -> list[Block]:
        """The first blocks in this order, without those that this run has passed over."""
        rows = self.db.rows(order, now=to_ms(self.now()), limit=len(passed) + most)
        return [row for row in rows if row.hash not in passed][:most]

    def _fetch(self, row: Block, round_robin: bool = False) -> Future[Fetched]:
        """The block, proven, and the host that showed it."""

        def shown(one: BlockSource) -> Fetched:
            return fetch_proven_block(one, row.hash), one.host

        return run_in_thread(lambda: self.sources.ask(shown, round_robin))

    def _pass_over(self, row: Block) -> None:
        now = self.now()
        age = now - from_ms(row.mined_at)
        if age > NEW:
            pause = FIRST_PAUSE if row.not_before is None else min(age, LONGEST_PAUSE)
            self.db.run(blocks.PASS_OVER, hash=row.hash, until=to_ms(now + pause))

    def _set_aside(self, row: Block, error: Exception, report: Report) -> None:
        """For a block that cannot be read, as when memory does not suffice: asked for again later.

        Until then payments in it are not found, and no run is complete.
        """
        now = self.now()
        note_failure(self.db, Work(part_work.CORE, "block", row.height), error, now)
        report.set_aside.append(row.height)
        self.db.run(blocks.PASS_OVER, hash=row.hash, until=to_ms(now + FIRST_PAUSE))

    def work_off(self) -> None:
        """Asks for blocks again in which a part could not do its work; what fails again waits."""
        until_s = time.monotonic() + MOST_S
        for height, works in blocks_due(self.db, self.now(), MOST_WORKED_OFF).items():
            row = self.db.row(blocks.AT, height=height)
            if row is None or time.monotonic() > until_s or not self._may_read(row):
                return
            try:
                block, _ = self._fetch(row).result()
            except OutOfQuota:
                return
            except (ExplorerError, MemoryError) as error:
                for work in works:
                    note_failure(self.db, work, error, self.now())
                continue
            now = self.now()
            concerned = concerns_of(self.db, height, block, now)
            prices = self._prices(row, bool(concerned))
            work_on_block(self.db, self.settings, concerned, height, block, prices, now)
            forget_others(self.db, works, concerned)

    def _prices(self, row: Block, is_asked: bool) -> Mapping[str, Decimal]:
        is_new = not is_late(from_ms(row.mined_at), self.now())
        if is_new and is_asked:
            return receipt_prices(self.db, self.prices)
        return {}

    def _may_read(self, row: Block) -> bool:
        """True for the newest block, always; for others while each minute keeps its calls."""
        allowance = self.sources.allowance()
        is_newest = row.height == blocks.tip_height(self.db)
        return is_newest or allowance.minutely > allowance.per_hour / 60 / KEPT_PART

    def _read(
        self, row: Block, report: Report, fetched: Future[Fetched] | None = None
    ) -> bool:
        """False if it has to be read again. Without `fetched` the block is asked for now."""
        block, host = (fetched or self._fetch(row)).result()
        now = self.now()
        concerned = concerns_of(self.db, row.height, block, now)
        prices = self._prices(row, bool(concerned or paid_invoices(self.db, block)))
        with self.db.write():
            # Blocks fetched together are read in turn, so each sees the results of the one before.
            meta.lock(self.db)
            first = self.db.only(blocks.UNREAD)[1]  # the lowest that is not read
            spends = (
                spends_of(block) if first is not None and first < row.height else None
            )
            if (
                self.db.run(blocks.READ, hash=row.hash, at=to_ms(now), spends=spends)
                != 1
            ):
                return True  # another run has read it
            tip_height = blocks.tip_height(self.db) or row.height
            new = partial(Scan, now, tip_height, prices=prices, explorer=host)
            scans = facts_of(
                self.db, self.settings.network.name, row.height, block, new
            )
            failed = try_apply(self.db, self.settings, scans, now, report)
            applied = (scan for id, scan in scans.items() if id not in failed)
            read_spends_again(
                self.db, [coin for scan in applied for coin in scan.confirmed]
            )
            plan_block(self.db, concerned, row.height, now)
            self.db.run(part_work.DONE, **Work(part_work.CORE, "block", row.height).key)
            if failed:
                self.db.run(blocks.READ_AGAIN, height=row.height)
            if first == row.height:
                lowest = self.db.only(blocks.UNREAD)[1]
                height = tip_height + 1 if lowest is None else lowest
                self.db.run(blocks.FORGET_SPENDS, height=height)
        report.blocks_read += 1
        work_on_block(self.db, self.settings, concerned, row.height, block, prices, now)
        return not failed
