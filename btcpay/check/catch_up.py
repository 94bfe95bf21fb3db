"""Brings headers and blocks up to the chain's tip, and decides on the grounds of blocks alone.

So payments become deep enough, unpaid invoices end without a mempool, and a stuck chain is noticed.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.chain.first_header import keep_first_header
from btcpay.chain.follow import Follower
from btcpay.chain.progress import first_needed_ms, is_at_stake
from btcpay.check.apply import try_apply
from btcpay.check.block_reader import BlockReader
from btcpay.check.facts import receipt_prices
from btcpay.check.parts import count_again, undo_planned
from btcpay.check.report import Report
from btcpay.check.undo import undo_above
from btcpay.invoices.status import output_of, rules_for
from btcpay.settlement.decide import is_deep
from btcpay.settlement.settle import HELD_AT_MOST
from btcpay.settlement.values import Scan
from btcpay.values.errors import BadRow, ExplorerError
from btcpay.values.times import boot_mark, elapsed, from_ms, to_ms
from storage.queries import blocks, meta, payments
from storage.queries.lists import mempool_watch
from storage.queries.meta import Key

log = logging.getLogger(__name__)

QUIET = timedelta(
    minutes=30
)  # without a block, after which a source's mere claim of more counts
# Without a mempool a deadline has passed once a block's time is later by this much.
ENDS_AFTER = timedelta(hours=1)
ENDED_AT_ONCE = (
    500  # in a transaction, so that others wait less than a second for its locks
)
IDLE_KEPT = timedelta(hours=2)  # as far back as the reading for a new invoice begins
MANY = 144  # unread blocks, a day of them
BEFORE_THE_FIRST = timedelta(days=1)  # our clock may have been ahead when it was made


@dataclass(frozen=True)
class CatchUp(BlockReader):
    """Follows the headers before it reads; `mark` reads the clock that does not step."""

    mark: Callable[[], str] = boot_mark

    def follow(self, report: Report) -> bool:
        """Takes over new headers and reads their blocks; True if the tip is known."""
        before = report.stuck
        report.stuck = ""
        try:
            if not keep_first_header(
                self.db, self.settings.network, self.sources, self._now
            ):
                return False
            asked_at = self.now()
            follower = Follower(
                self.db, self.settings.network, self.sources, self._undo
            )
            has_changed = follower.follow()
            report.answered = True
            report.tip_asked_at = asked_at
            report.is_agreed = follower.is_agreed
            undo_planned(self.db, self.settings, self.now())
            # The explorer that showed more earlier in this run may be resting by now.
            report.stuck = self._why_stuck(follower) or ("" if has_changed else before)
            self._catch_up(report)
        except ExplorerError as error:
            log.error("the check could not follow the chain: %s", error)
            report.chain_failed = True
            return report.answered
        if report.stuck:
            log.error(
                "the chain may not be whole, and nothing expires: %s", report.stuck
            )
        elif not report.blocks_behind:
            meta.put_time(self.db, Key.READ_AT, asked_at)
        return True

    def _undo(self, height: int) -> None:
        undo_above(self.db, self.settings, height, self.now())

    def _catch_up(self, report: Report) -> None:
        # Skipped blocks are never read, so a clock that is ahead must not make blocks look old.
        now = self._now()
        if is_at_stake(self.db, now):
            if self.db.only(blocks.UNREAD)[0] > MANY:
                self._skip_before_the_first_invoice(now)
            self.read_all(report)
        else:
            self.db.run(blocks.SKIP, mined_before=to_ms(now - IDLE_KEPT))
        self.work_off()
        count_again(self.db, self.settings, self.now())

    def _skip_before_the_first_invoice(self, now: datetime) -> None:
        """Passes over blocks from before anybody was asked for money, when no check ran for long.

        By a clock that is ahead of the first invoice none is.
        """
        first_ms = first_needed_ms(self.db)
        if first_ms is not None and from_ms(first_ms) <= now:
            self.db.run(
                blocks.SKIP, mined_before=to_ms(from_ms(first_ms) - BEFORE_THE_FIRST)
            )

    def _now(self) -> datetime:
        """The time, by the sources' clock if ours is ahead of it."""
        now = self.now()
        return now - self._ahead(now)

    def _ahead(self, now: datetime) -> timedelta:
        return self.sources.clock_skew.time_ahead(now, time.monotonic())

    def _why_stuck(self, follower: Follower) -> str:
        """The reason to believe that there are more blocks than we know; empty if there is none."""
        top = self.db.only(blocks.TOP)
        now = self.now()
        quiet = max(now - from_ms(top.mined_at), self._silence(top.hash))
        if more := follower.unread_blocks_elsewhere(quiet > QUIET):
            return more
        if self.settings.network.stands_still(now - quiet, now):
            return f"no block has come for {quiet // timedelta(minutes=1)} minutes"
        return ""

    def _silence(self, tip: str) -> timedelta:
        """The time that `tip` has been ours, by a clock that does not step; 0 if unknown."""
        mark = self.mark()
        known, _, since = (meta.get(self.db, Key.TIP_SINCE) or "").partition(" ")
        silence = elapsed(since, mark) if known == tip else None
        if silence is None:
            meta.put(self.db, Key.TIP_SINCE, f"{tip} {mark}")
        return silence or timedelta()

    def settle_deep(self, report: Report) -> None:
        """Makes payments of outputs that have become deep enough."""
        now = self.now()
        tip_height = blocks.tip_height(self.db) or 0
        deepening = self.db.rows(mempool_watch.DEEPENING)
        ready = {
            row.invoice_id
            for row in deepening
            if self._is_ready(row, tip_height, report)
        }
        at_receipt = receipt_prices(self.db, self.prices) if ready else {}
        scan = Scan(now, tip_height, prices=at_receipt)
        try_apply(
            self.db, self.settings, dict.fromkeys(sorted(ready), scan), now, report
        )

    def _is_ready(
        self, row: payments.OutputWith, tip_height: int, report: Report
    ) -> bool:
        try:
            return is_deep(output_of(row), tip_height, rules_for(self.settings, row))
        except BadRow:  # the next is somebody's money too
            log.exception("the outputs to invoice %s are damaged", row.invoice_id)
            report.failed.append(row.invoice_id)
            return False

    def end_by_blocks(self, report: Report) -> None:
        """Ends invoices that no block pays.

        A block's time may be ahead, so the deadline must have passed by our clock, too, or by the
        sources' if ours is ahead of it.
        """
        if report.ends_before is None:
            return
        top = self.db.only(blocks.TOP)
        now = self.now()
        ends_at = min(
            report.ends_before - self._ahead(now), from_ms(top.mined_at) - ENDS_AFTER
        )
        if not report.is_agreed:
            ends_at -= HELD_AT_MOST
        ending = [
            row.id for row in self.db.rows(mempool_watch.ENDING, before=to_ms(ends_at))
        ]
        scan = Scan(asked_at=now, tip_height=top.height, ends_at=ends_at)
        for at in range(0, len(ending), ENDED_AT_ONCE):
            scans = dict.fromkeys(ending[at : at + ENDED_AT_ONCE], scan)
            try_apply(self.db, self.settings, scans, now, report)
