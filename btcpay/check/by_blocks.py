"""Decisions by blocks alone: payments that are deep enough, ends where no mempool is asked."""

import logging
from datetime import datetime, timedelta

from btcpay.check.apply import try_apply
from btcpay.check.receipt_prices import receipt_prices
from btcpay.check.report import Report
from btcpay.invoices.status import output_of, rules_for
from btcpay.prices.price import Prices
from btcpay.settings.settings import Settings
from btcpay.settlement.decide import is_deep
from btcpay.settlement.settle import HELD_AT_MOST
from btcpay.settlement.values import Scan
from btcpay.values.errors import BadRow
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.queries import blocks, payments
from storage.queries.lists import mempool_watch

log = logging.getLogger(__name__)

# Without a mempool a deadline has passed once a block's time is later by this much.
ENDS_AFTER = timedelta(hours=1)


def settle_deep(
    db: Database, settings: Settings, prices: Prices, report: Report, now: datetime
) -> None:
    """Makes payments of outputs that have the confirmations that were asked for."""
    tip_height = blocks.tip_height(db) or 0
    ready = {
        row.invoice_id
        for row in db.rows(mempool_watch.DEEPENING)
        if _is_ready(row, settings, tip_height, report)
    }
    at_receipt = receipt_prices(db, prices) if ready else {}
    for invoice_id in sorted(ready):
        scan = Scan(now, tip_height, prices=at_receipt)
        try_apply(db, settings, invoice_id, scan, now, report)


def _is_ready(
    row: payments.OutputWith, settings: Settings, tip_height: int, report: Report
) -> bool:
    try:
        return is_deep(output_of(row), tip_height, rules_for(settings, row))
    except BadRow:  # the next is somebody's money too
        log.exception("what came to invoice %s is damaged", row.invoice_id)
        report.failed.append(row.invoice_id)
        return False


def end_by_blocks(
    db: Database, settings: Settings, report: Report, now: datetime, ahead: timedelta
) -> None:
    """Ends invoices that are unpaid in all blocks; our clock is `ahead` of the sources'.

    A block's time may be ahead: no end comes before its deadline by our clock either.
    """
    if report.ends_before is None:
        return
    top = db.only(blocks.TOP)
    ends_at = min(report.ends_before - ahead, from_ms(top.mined_at) - ENDS_AFTER)
    if not report.is_agreed:
        ends_at -= HELD_AT_MOST
    for row in db.rows(mempool_watch.ENDING, before=to_ms(ends_at)):
        scan = Scan(asked_at=now, tip_height=top.height, ends_at=ends_at)
        try_apply(db, settings, row.id, scan, now, report)
