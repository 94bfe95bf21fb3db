"""Reads blocks: fetches each block, verifies it, and stores its changes exactly once."""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from btcpay.chain.pool import Pool
from btcpay.chain.progress import KEPT_PART, hours_to_read
from btcpay.chain.sources import BlockSource, fetch_proven_block
from btcpay.check.facts import paid_invoices
from btcpay.check.parts import (
    blocks_due,
    forget_others,
    part_matches_of,
    work_on_block,
)
from btcpay.check.receipt_prices import is_late, receipt_prices
from btcpay.check.report import Report
from btcpay.check.store_block import FetchedBlock, store_block
from btcpay.http.deadline import run_in_thread
from btcpay.invoices.part_work import Work, note_failure
from btcpay.prices.price import Prices
from btcpay.proofs.block import ProvenBlock
from btcpay.settings.settings import Settings
from btcpay.values.errors import ExplorerError, OutOfQuota
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import Block
from storage.queries import blocks, part_work
from storage.queries.pauses import LONGEST_MS
from storage.statement import Typed

log = logging.getLogger(__name__)

# Seconds. After that the run queries the mempool, and the next run reads on.
MOST_S = 40
# The run stops after this many failed blocks in a row: then the fault is not in the blocks.
MOST_SKIPPED = 3
# Maximum number of blocks that a run fetches again because a part (an optional plug-in) failed to
# process them.
MOST_FETCHED_AGAIN = 10
# A block that no source has is skipped: the first time for a minute, later for a time that equals
# its age, up to an hour. A block younger than NEW is tried in each run, so that a short outage of
# the explorers does not delay its payments.
NEW = timedelta(minutes=10)
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(milliseconds=LONGEST_MS)


@dataclass
class SkippedBlocks:
    """The blocks that this run of the check could not read, and does not try again.

    `hashes` also has blocks that were read but must be read again, by a later run.
    `errors` are the errors of blocks that could not be fetched. `in_a_row` is the
    number of consecutive failures.
    """

    hashes: set[str] = field(default_factory=set)
    errors: list[ExplorerError] = field(default_factory=list)
    in_a_row: int = 0

    def add(self, row: Block) -> None:
        self.hashes.add(row.hash)
        self.in_a_row += 1


@dataclass(frozen=True)
class BlockReader:
    """Reads blocks from the sources. `now` returns the wall-clock time."""

    db: Database
    settings: Settings
    sources: Pool[BlockSource]
    prices: Prices
    now: Callable[[], datetime]

    def read_all(self, report: Report) -> None:
        """Reads unread blocks until none is left, or until time or calls run out.

        1. The newest block is read first, so that a new payment never waits for old blocks.
        2. Then the oldest ones are read. The result does not depend on the order.
        3. After a failure the newest ones are read, since old ones may not be available
           anywhere.

        Gives up after MOST_SKIPPED failures in a row. Raises ExplorerError at the end
        if a block could not be fetched, except for lack of quota, which is only logged.
        A block whose processing failed is recorded in the report.
        """
        skipped = SkippedBlocks()
        try:
            self._read_due(skipped, report)
        except OutOfQuota as error:
            log.warning("not every block is read: %s", error)
        finally:
            unread_count, _ = self.db.get(blocks.UNREAD)
            report.blocks_behind = unread_count
            per_hour = self.settings.explorer_calls_per_hour
            report.hours_behind = hours_to_read(unread_count, per_hour)
        if skipped.errors:
            raise skipped.errors[0]

    def _read_due(self, skipped: SkippedBlocks, report: Report) -> None:
        """Reads blocks in the order that `read_all` describes. Raises OutOfQuota.

        While a block is read, the next ones in this order are fetched.
        """
        end_s = time.monotonic() + MOST_S
        order = blocks.NEWEST
        concurrency = 1  # number of blocks that are fetched at the same time
        fetches: dict[str, Future[FetchedBlock]] = {}  # by hash
        while skipped.in_a_row < MOST_SKIPPED:
            rows = self._due(order, skipped.hashes, concurrency)
            if not rows or time.monotonic() > end_s:
                return
            row = rows[0]
            if not self._may_read(row):
                return
            fetches = self._fetch_ahead(rows, fetches, round_robin=concurrency > 1)
            fetch = fetches.pop(row.hash)
            self._read_or_skip(row, fetch, skipped, report)
            # From the second block on, in the order of `read_all`'s steps 2 and 3.
            order = blocks.OLDEST
            if skipped.hashes:
                order = blocks.NEWEST
            concurrency = self.sources.concurrency

    def _read_or_skip(
        self,
        row: Block,
        fetch: Future[FetchedBlock],
        skipped: SkippedBlocks,
        report: Report,
    ) -> None:
        """Reads the block, or skips it for this run if it fails. Raises OutOfQuota."""
        try:
            is_done = self._read(row, report, fetch)
        except OutOfQuota:
            raise
        except ExplorerError as error:
            skipped.errors.append(error)
            skipped.add(row)
            self._skip_for_a_while(row)
        except Exception as error:  # noqa: BLE001 - a bad block must not stop the others
            self._set_aside(row, error, report)
            skipped.add(row)
        else:
            skipped.in_a_row = 0
            if not is_done:
                skipped.hashes.add(row.hash)

    def _due(
        self,
        order: Typed[Block],
        skipped: Collection[str],
        most: int,
    ) -> list[Block]:
        """Returns up to `most` due blocks in this order, without those in `skipped`."""
        limit = len(skipped) + most
        rows = self.db.rows(order, now=to_ms(self.now()), limit=limit)
        due = [row for row in rows if row.hash not in skipped]
        return due[:most]

    def _fetch_ahead(
        self,
        rows: Sequence[Block],
        fetches: Mapping[str, Future[FetchedBlock]],
        round_robin: bool,
    ) -> dict[str, Future[FetchedBlock]]:
        """Returns a running fetch for each block, by the block's hash.

        Fetches that `fetches` has already are reused; the others are started.
        `round_robin` is that of `Pool.ask`.
        """
        running: dict[str, Future[FetchedBlock]] = {}
        for row in rows:
            running[row.hash] = fetches.get(row.hash) or self._fetch(row, round_robin)
        return running

    def _fetch(self, row: Block, round_robin: bool = False) -> Future[FetchedBlock]:
        """Starts to fetch a block in a new thread. `round_robin` is that of `Pool.ask`."""

        def fetch_from(source: BlockSource) -> FetchedBlock:
            return FetchedBlock(fetch_proven_block(source, row.hash), source.host)

        return run_in_thread(lambda: self.sources.ask(fetch_from, round_robin))

    def _skip_for_a_while(self, row: Block) -> None:
        """Lets the next runs skip a block that no source has, unless it is new."""
        now = self.now()
        age = now - from_ms(row.mined_ms)
        if age <= NEW:
            return
        pause = min(age, LONGEST_PAUSE)
        if row.not_before is None:
            pause = FIRST_PAUSE
        self.db.run(blocks.PASS_OVER, hash=row.hash, until=to_ms(now + pause))

    def _set_aside(self, row: Block, error: Exception, report: Report) -> None:
        """Skips a block for a minute after an unexpected error, such as lack of memory.

        Until the block is read, payments in it are not found, and no run counts as
        complete.
        """
        now = self.now()
        work = Work(part_work.CORE, "block", row.height)
        note_failure(self.db, work, error, now)
        report.set_aside.append(row.height)
        until_ms = to_ms(now + FIRST_PAUSE)
        self.db.run(blocks.PASS_OVER, hash=row.hash, until=until_ms)

    def retry_part_work(self) -> None:
        """Repeats the failed work of parts (optional plug-ins) on earlier blocks.

        The blocks are fetched again. Work that fails again is retried in a later run.
        """
        end_s = time.monotonic() + MOST_S
        works_by_height = blocks_due(self.db, self.now(), MOST_FETCHED_AGAIN)
        for height, works in works_by_height.items():
            row = self.db.get_or_none(blocks.AT, height=height)
            is_time_up = time.monotonic() > end_s
            if row is None or is_time_up or not self._may_read(row):
                return
            try:
                block = self._fetch(row).result().block
            except OutOfQuota:
                return
            except (ExplorerError, MemoryError) as error:
                for work in works:
                    note_failure(self.db, work, error, self.now())
                continue
            self._repeat_part_work(row, block, works)

    def _repeat_part_work(
        self,
        row: Block,
        block: ProvenBlock,
        works: Sequence[Work],
    ) -> None:
        """Makes the parts do their work on a block that was fetched again for `works`."""
        now = self.now()
        part_matches = part_matches_of(self.db, row.height, block, now)
        prices = self._prices(row, are_needed=bool(part_matches))
        work_on_block(
            self.db,
            self.settings,
            part_matches,
            row.height,
            block,
            prices,
            now,
        )
        forget_others(self.db, works, part_matches)

    def _prices(self, row: Block, are_needed: bool) -> Mapping[str, Decimal]:
        """Returns the prices of one bitcoin by currency.

        Returns {} if `are_needed` is False or the block is too old.
        """
        if not are_needed:
            return {}
        mined_at = from_ms(row.mined_ms)
        if is_late(mined_at, self.now()):
            return {}
        return receipt_prices(self.db, self.prices)

    def _may_read(self, row: Block) -> bool:
        """True if calls may be spent on this block.

        The newest block may always be read. For others, enough calls per minute must be
        left for headers and the mempool.
        """
        is_newest = row.height == blocks.tip_height(self.db)
        if is_newest:
            return True
        allowance = self.sources.allowance()
        full_rate = allowance.per_hour / 60
        return allowance.minutely > full_rate / KEPT_PART

    def _read(
        self,
        row: Block,
        report: Report,
        fetch: Future[FetchedBlock] | None = None,
    ) -> bool:
        """Reads one block. Returns False if it must be read again.

        If `fetch` is None, the block is fetched now.
        """
        if fetch is None:
            fetch = self._fetch(row)
        fetched = fetch.result()
        block = fetched.block
        now = self.now()
        part_matches = part_matches_of(self.db, row.height, block, now)
        is_paying = bool(part_matches or paid_invoices(self.db, block))
        prices = self._prices(row, are_needed=is_paying)
        failed_ids = store_block(
            self.db,
            self.settings,
            row,
            fetched,
            part_matches,
            prices,
            now,
            report,
        )
        if failed_ids is None:  # another run has read the block meanwhile
            return True
        report.blocks_read += 1
        work_on_block(
            self.db,
            self.settings,
            part_matches,
            row.height,
            block,
            prices,
            now,
        )
        return not failed_ids
