"""What is known of those who wait, for the plan; and what a look at the mempool shows of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.chain.sources import Mempool
from btcpay.check.plan import (
    BEFORE_DEADLINE,
    CLOSED_LATELY,
    MINUTE,
    NEVER,
    WatchedInvoice,
    due,
)
from btcpay.settings.settings import Settings
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import from_ms, from_ms_or_none, to_ms
from storage import at_once
from storage.database import Database, Values, grouped
from storage.models import Invoice, Output
from storage.queries.lists import mempool_watch

AHEAD_MS = 60_000  # the clocks of two machines may differ by this much
AHEAD_MIN = 60  # minutes in which the next look is worked out


@dataclass(frozen=True)
class Look:
    """An answer about an invoice; our clock was `ahead` of the sources' when we asked."""

    invoice_id: str
    mempool: Mempool
    asked_at: datetime
    ahead: timedelta


def watched_invoices(
    db: Database,
    settings: Settings,
    now: datetime,
    rows: Sequence[Invoice] | None = None,
) -> list[WatchedInvoice]:
    """Invoices for which the mempool may be asked, or those of the rows alone."""
    since: Values = {"vanished_after": to_ms(now - 2 * settings.network.gone_after) - 1}
    if rows is None:
        rows = db.rows(mempool_watch.ASKED, after=to_ms(now - CLOSED_LATELY))
        rows += db.rows(mempool_watch.ENDING, before=to_ms(now + BEFORE_DEADLINE))
        rows += db.rows(mempool_watch.EXPECTING)
    each = {row.id: row for row in rows}
    outputs = at_once.rows(
        db, mempool_watch.UNSETTLED, [{"id": id} | since for id in each]
    )
    unsettled = grouped(outputs, lambda output: output.invoice_id)
    return [_watched(row, unsettled[id], now) for id, row in each.items()]


def _watched(row: Invoice, outputs: Sequence[Output], now: datetime) -> WatchedInvoice:
    waiting = [
        one for one in outputs if one.vanished_at is None and one.block_height is None
    ]
    alive_sats = sum(one.amount_sats for one in outputs if one.vanished_at is None)
    vanished = [one.vanished_at for one in outputs if one.vanished_at is not None]
    return WatchedInvoice(
        id=row.id,
        status=row.status,
        checked_at=_past(row.checked_at, now),
        asked_at=_past(row.asked_at, now),
        opened_at=_past(row.asked_since, now),
        came_at=max((from_ms(one.first_seen_at) for one in waiting), default=None),
        is_covered=alive_sats >= row.amount_sats,
        vanished_at=_past(max(vanished, default=None), now),
        expires_at=from_ms_or_none(row.expires_at),
        failures=row.failures,
        failed_at=_past(row.failed_at, now),
    )


def _past(ms: int | None, now: datetime) -> datetime:
    """The stored time; NEVER also for a future one, written while the clock was ahead."""
    if ms is None or ms > to_ms(now) + AHEAD_MS:
        return NEVER
    return from_ms(ms)


def next_look(db: Database, settings: Settings, row: Invoice, now: datetime) -> str:
    """When, and why, the mempool is asked next for an invoice; a block shows money in any case."""
    (one,) = watched_invoices(db, settings, now, [row])
    known = settings.network.gone_after, settings.explorer_calls_per_hour
    for minutes in range(AHEAD_MIN):
        if found := due(one, *known, now + minutes * MINUTE):
            return f"{f'in {minutes} min' if minutes else 'the next check'}: {found.reason}"
    if one.status != InvoiceStatus.OPEN or one.is_covered:
        return "not until more money comes"
    return "when somebody opens its page, or its deadline is near"


def missing_outputs(db: Database, look: Look) -> list[Output]:
    """Outputs that waited and are not shown: they may be in a block, or gone."""
    shown = {output.outpoint for output in look.mempool.outputs}
    waiting = db.rows(mempool_watch.WAITING, invoice_id=look.invoice_id)
    return [row for row in waiting if (row.txid, row.vout) not in shown]
