"""Reads headers and blocks up to the tip, and applies the rules that need only blocks.

By these rules outputs with enough confirmations become payments, and unpaid invoices
expire if no mempool can be queried. Other rules detect a chain that does not advance.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from btcpay.chain.first_header import keep_first_header
from btcpay.chain.follow import Follower
from btcpay.chain.progress import first_needed_ms, is_at_stake
from btcpay.check.apply import try_apply
from btcpay.check.block_reader import BlockReader
from btcpay.check.due import CLOSED_LATELY
from btcpay.check.parts import count_again, undo_planned
from btcpay.check.receipt_prices import receipt_prices
from btcpay.check.record import RunRecord
from btcpay.check.report import Report
from btcpay.check.undo import undo_above
from btcpay.invoices.status import output_of, rules_for
from btcpay.settlement.decide import is_deep
from btcpay.settlement.settle import HELD_AT_MOST
from btcpay.settlement.values import Scan
from btcpay.values.errors import BadRow, ExplorerError
from btcpay.values.times import boot_mark, from_ms, start_of_hour, to_ms
from storage.queries import blocks, meta, payments
from storage.queries.lists import mempool_watch
from storage.queries.meta import Key

log = logging.getLogger(__name__)

# After this time without a block, a source that claims more blocks is believed without proof.
QUIET = timedelta(minutes=30)
# Without a mempool, an invoice expires once a block's time is later than its deadline
# by this much.
ENDS_AFTER = timedelta(hours=1)
# How many invoices expire in one transaction, which must hold its locks for less than a second.
ENDED_AT_ONCE = 500
# While no invoice is open, blocks are skipped once they are older than this, all those of an hour
# together, so that this is written once an hour. Newer ones are read when an invoice exists.
IDLE_KEPT = timedelta(hours=2)
# More unread blocks than this (a day's) mean that no check ran for long.
MANY = 144
# This machine's clock may have been ahead by this much when the first invoice was made.
BEFORE_THE_FIRST = timedelta(days=1)


@dataclass(frozen=True)
class CatchUp(BlockReader):
    """Stores new headers, then reads their blocks.

    `mark` returns the time by the machine's monotonic clock, which nobody can set.
    Tests replace it. `record` stores the times and totals of this process's runs.
    """

    mark: Callable[[], str] = boot_mark
    record: RunRecord = field(default_factory=RunRecord)

    def follow(self, report: Report) -> bool:
        """Stores new headers and reads their blocks. Returns True if the tip is known.

        The tip is not known if no source has shown it in this run, or if there is no
        merchant yet. The results and failures are written to the report.
        """
        # The report may have the results of an earlier call in the same run.
        stuck_before = report.stuck_reason
        report.read_at = None
        report.stuck_reason = ""
        try:
            has_first_header = keep_first_header(
                self.db,
                self.settings.network,
                self.sources,
                self._now,
            )
            if not has_first_header:
                return False
            self._follow_headers(report, stuck_before)
            self._catch_up(report)
        except ExplorerError as error:
            log.error("the check could not follow the chain: %s", error)
            report.chain_failed = True
            return report.has_tip
        if report.stuck_reason:
            log.error(
                "the chain may not be whole, and nothing expires: %s",
                report.stuck_reason,
            )
        elif not report.blocks_behind:
            report.read_at = report.tip_asked_at
            if self._is_page_open():
                self.note_read(report)
        return True

    def _follow_headers(self, report: Report, stuck_before: str) -> None:
        """Stores new headers, and reports whether the chain may be incomplete.

        `stuck_before` is the reason that was found earlier in this run; "" if none.
        Raises ExplorerError if no source has shown its headers.
        """
        asked_at = self.now()
        follower = Follower(
            self.db,
            self.settings.network,
            self.sources,
            self._undo,
        )
        has_changed = follower.follow()
        report.has_new_tip |= has_changed
        report.has_tip = True
        report.tip_asked_at = asked_at
        report.is_agreed = follower.is_agreed
        undo_planned(self.db, self.settings, self.now())
        report.stuck_reason = self._why_stuck(follower)
        if not report.stuck_reason and not has_changed:
            # The explorer that showed more blocks earlier in this run may be in its
            # back-off by now.
            report.stuck_reason = stuck_before

    def note_read(self, report: Report) -> None:
        """Stores `report.read_at`, the time up to which every block is read.

        The invoices' pages show this time. Does nothing if it is None.
        """
        if report.read_at:
            with self.db.unforced():
                meta.put_time(self.db, Key.READ_MS, report.read_at)

    def _is_page_open(self) -> bool:
        """True if an invoice's page was open lately."""
        after_ms = to_ms(self.now() - CLOSED_LATELY)
        return bool(self.db.rows(mempool_watch.ASKED, after=after_ms))

    def _undo(self, height: int) -> None:
        undo_above(self.db, self.settings, height, self.now())

    def _catch_up(self, report: Report) -> None:
        """Reads the unread blocks. While nothing is at stake, skips old ones instead.

        Also repeats failed work of parts (optional plug-ins) on earlier blocks.
        """
        # Skipped blocks are never read. A clock that is ahead would make new blocks look
        # old, so the corrected time is used.
        now = self._now()
        if is_at_stake(self.db, now):
            unread_count, _ = self.db.get(blocks.UNREAD)
            if unread_count > MANY:
                self._skip_before_the_first_invoice(now)
            self.read_all(report)
        else:
            mined_before = start_of_hour(now - IDLE_KEPT)
            self.db.run(blocks.SKIP, mined_before=to_ms(mined_before))
        self.retry_part_work()
        count_again(self.db, self.settings, self.now())

    def _skip_before_the_first_invoice(self, now: datetime) -> None:
        """Marks blocks that are older than the first invoice as not to be read.

        This saves time after a long time without checks. Nothing is skipped if the
        first invoice is later than `now`, since then the clock was wrong.
        """
        first_ms = first_needed_ms(self.db)
        if first_ms is None or from_ms(first_ms) > now:
            return
        mined_before = from_ms(first_ms) - BEFORE_THE_FIRST
        self.db.run(blocks.SKIP, mined_before=to_ms(mined_before))

    def _now(self) -> datetime:
        """Returns the time by this machine's clock, or by the sources' clocks if it is ahead."""
        now = self.now()
        return now - self._ahead(now)

    def _ahead(self, now: datetime) -> timedelta:
        """Returns how far this machine's clock is ahead of the sources' clocks."""
        return self.sources.clock_skew.time_ahead(now, time.monotonic())

    def _why_stuck(self, follower: Follower) -> str:
        """Returns why the stored chain is probably incomplete; empty if it is not."""
        top = self.db.get(blocks.TOP)
        now = self.now()
        # Two measures, since the clock of this machine or of the miner may be wrong.
        by_block = now - from_ms(top.mined_ms)
        by_record = self.record.silence(self.db, top.hash, self.mark())
        quiet_for = max(by_block, by_record)
        claim = follower.unread_blocks_elsewhere(quiet_for > QUIET)
        if claim:
            return claim
        if self.settings.network.stands_still(now - quiet_for, now):
            return f"no block has come for {quiet_for // timedelta(minutes=1)} minutes"
        return ""

    def settle_deep(self, report: Report) -> None:
        """Creates payments from outputs that now have enough confirmations."""
        now = self.now()
        tip_height = blocks.tip_height(self.db) or 0
        invoice_ids = {
            row.invoice_id
            for row in self.db.rows(mempool_watch.DEEPENING)
            if self._has_enough_confirmations(row, tip_height, report)
        }
        if not invoice_ids:
            return
        prices = receipt_prices(self.db, self.prices)
        scan = Scan(now, tip_height, prices=prices)
        scans = dict.fromkeys(sorted(invoice_ids), scan)
        try_apply(self.db, self.settings, scans, now, report)

    def _has_enough_confirmations(
        self,
        row: payments.OutputWith,
        tip_height: int,
        report: Report,
    ) -> bool:
        """True if the output can become a payment.

        False if its row is damaged; then the report gets the invoice as a failed one.
        """
        try:
            return is_deep(output_of(row), tip_height, rules_for(self.settings, row))
        except BadRow:  # one damaged row must not block the other invoices
            log.exception("the outputs to invoice %s are damaged", row.invoice_id)
            report.failed.append(row.invoice_id)
            return False

    def end_by_blocks(self, report: Report, has_mempool: bool) -> None:
        """Expires invoices whose deadline has passed and that no block has paid.

        Does nothing while blocks are unread or the chain may be incomplete. If there
        are explorers (`has_mempool`), an invoice usually expires after a query of the
        mempool for its address. So this method then expires only invoices that have
        waited for such a query longer than HELD_AT_MOST. The same delay applies if only
        one of several sources has shown the tip.

        The deadline must have passed both by the newest block's time and by this
        machine's clock, since a miner can set a block's time ahead. If this machine's
        clock is ahead of the sources' clocks, theirs counts instead.
        """
        if report.ends_before is None:
            return
        top = self.db.get(blocks.TOP)
        now = self.now()
        by_clock = report.ends_before - self._ahead(now)
        by_block = from_ms(top.mined_ms) - ENDS_AFTER
        ends_at = min(by_clock, by_block)
        if has_mempool or not report.is_agreed:
            ends_at -= HELD_AT_MOST
        rows = self.db.rows(mempool_watch.ENDING, before=to_ms(ends_at))
        ids = [row.id for row in rows]
        scan = Scan(asked_at=now, tip_height=top.height, ends_at=ends_at)
        for start in range(0, len(ids), ENDED_AT_ONCE):
            some_ids = ids[start : start + ENDED_AT_ONCE]
            scans = dict.fromkeys(some_ids, scan)
            try_apply(self.db, self.settings, scans, now, report)
