"""Brings headers and blocks up to the chain's tip, and decides on the grounds of blocks alone.

That is: payments are deep enough, unpaid invoices end without a mempool, the chain is stuck.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.chain.begin import begin
from btcpay.chain.follow import Follower
from btcpay.chain.pool import Pool
from btcpay.chain.progress import is_at_stake
from btcpay.chain.sources import BlockSource
from btcpay.check.apply import try_apply
from btcpay.check.read import Reader
from btcpay.check.receive import receipt_prices
from btcpay.check.report import Report
from btcpay.check.undo import undo_above
from btcpay.invoices.status import output_of, rules_for
from btcpay.prices.price import Prices
from btcpay.settings.settings import Settings
from btcpay.settlement.decide import is_deep
from btcpay.settlement.settle import HELD_AT_MOST
from btcpay.settlement.values import Scan
from btcpay.values.errors import BadRow, ExplorerError
from btcpay.values.times import elapsed, from_ms, to_ms
from storage.database import Database
from storage.queries import blocks, meta, payments
from storage.queries.lists import mempool_watch
from storage.queries.meta import Key

log = logging.getLogger(__name__)

QUIET = timedelta(minutes=30)  # without a block, after which a source's mere claim of more counts
IDLE_KEPT = timedelta(hours=2)  # as far back as the reading for a new invoice begins


@dataclass(frozen=True)
class CatchUp:
    db: Database
    settings: Settings
    sources: Pool[BlockSource]
    prices: Prices
    now: Callable[[], datetime]
    mark: Callable[[], str]

    def follow(self, report: Report) -> bool:
        """Takes over new headers and reads their blocks; True if the tip is known."""
        before, report.stuck = report.stuck, ""
        try:
            if not begin(self.db, self.settings.network, self.sources, self._now):
                return False
            asked_at = self.now()
            follower = Follower(self.db, self.settings.network, self.sources, self._undo)
            has_changed = follower.follow()
            report.answered, report.tip_asked_at = True, asked_at
            report.is_agreed = follower.is_agreed
            # The explorer that showed more earlier in this run may be resting by now.
            report.stuck = self._why_stuck(follower) or ("" if has_changed else before)
            self._read(report)
        except ExplorerError as error:
            log.error("the check could not follow the chain: %s", error)
            report.chain_failed = True
            return report.answered
        if report.stuck:
            log.error("the chain may not be whole, and nothing expires: %s", report.stuck)
        elif not report.blocks_behind:
            meta.put_time(self.db, Key.READ_AT, asked_at)
        return True

    def _undo(self, height: int) -> None:
        undo_above(self.db, self.settings, height, self.now())

    def _read(self, report: Report) -> None:
        # Skipped blocks are never read, so a clock that is ahead must not make blocks look old.
        now = self._now()
        if not is_at_stake(self.db, now):
            self.db.run(blocks.SKIP, mined_before=to_ms(now - IDLE_KEPT))
            return
        Reader(self.db, self.settings, self.sources, self.prices, self.now).read_all(report)

    def _now(self) -> datetime:
        """The time, by the sources' clock if ours is ahead of it."""
        now = self.now()
        return now - self.sources.clock_skew.ahead(now, time.monotonic())

    def _why_stuck(self, follower: Follower) -> str:
        """The reason to believe that there are more blocks than we know; empty if there is none."""
        top = self.db.only(blocks.TOP)
        now = self.now()
        quiet = max(now - from_ms(top.mined_at), self._silence(top.hash))
        if more := follower.more_elsewhere(quiet > QUIET):
            return more
        if self.settings.network.stands_still(now - quiet, now):
            return f"no block has come for {quiet // timedelta(minutes=1)} minutes"
        return ""

    def _silence(self, tip: str) -> timedelta:
        """The time since it became our tip, by a clock that does not step; 0 if unknown."""
        mark = self.mark()
        known, _, since = (meta.get(self.db, Key.TIP_SINCE) or "").partition(" ")
        silence = elapsed(since, mark) if known == tip else None
        if silence is None:
            meta.put(self.db, Key.TIP_SINCE, f"{tip} {mark}")
        return silence or timedelta()


# Without a mempool a deadline has passed once a block's time is later by this much.
ENDS_AFTER = timedelta(hours=1)


def settle_deep(
    db: Database, settings: Settings, prices: Prices, report: Report, now: datetime
) -> None:
    tip_height = blocks.tip_height(db) or 0
    ready = {
        row.invoice_id
        for row in db.rows(mempool_watch.DEEPENING)
        if _is_ready(row, settings, tip_height, report)
    }
    at_receipt = receipt_prices(db, prices) if ready else {}
    scan = Scan(now, tip_height, prices=at_receipt)
    try_apply(db, settings, dict.fromkeys(sorted(ready), scan), now, report)


def _is_ready(
    row: payments.OutputWith, settings: Settings, tip_height: int, report: Report
) -> bool:
    try:
        return is_deep(output_of(row), tip_height, rules_for(settings, row))
    except BadRow:  # the next is somebody's money too
        log.exception("the outputs to invoice %s are damaged", row.invoice_id)
        report.failed.append(row.invoice_id)
        return False


def end_by_blocks(
    db: Database, settings: Settings, report: Report, now: datetime, ahead: timedelta
) -> None:
    """Ends invoices that no block pays; our clock is `ahead` of the sources'.

    A block's time may be ahead, so the deadline must have passed by our clock, too.
    """
    if report.ends_before is None:
        return
    top = db.only(blocks.TOP)
    ends_at = min(report.ends_before - ahead, from_ms(top.mined_at) - ENDS_AFTER)
    if not report.is_agreed:
        ends_at -= HELD_AT_MOST
    ending = [row.id for row in db.rows(mempool_watch.ENDING, before=to_ms(ends_at))]
    scan = Scan(asked_at=now, tip_height=top.height, ends_at=ends_at)
    try_apply(db, settings, dict.fromkeys(ending, scan), now, report)
