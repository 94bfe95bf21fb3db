"""Finds the invoices that may need a look at the mempool, and outputs that left it.

A look is one query of the mempool for an invoice's address.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.chain.sources import Mempool
from btcpay.check.due import (
    BEFORE_DEADLINE,
    CLOSED_LATELY,
    MINUTE,
    NEVER,
    WatchedInvoice,
    due_look,
)
from btcpay.settings.settings import Settings
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import from_ms, from_ms_or_none, to_ms
from storage import at_once
from storage.database import Database, Values, group_by
from storage.models import Invoice, Output
from storage.queries.lists import mempool_watch

# Stored times may be ahead by this many milliseconds, since machines' clocks differ.
AHEAD_MS = 60_000
# `next_look` searches this many minutes ahead.
AHEAD_MIN = 60


@dataclass(frozen=True)
class Look:
    """The mempool's response about one invoice.

    `asked_at` is the time of the request by this machine's clock, and `ahead` how far
    that clock was ahead of the sources' clocks.
    """

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
    """Returns the invoices for which a look at the mempool may be due.

    If `rows` are given, returns exactly these invoices instead.
    """
    if rows is None:
        opened_after_ms = to_ms(now - CLOSED_LATELY)
        ends_before_ms = to_ms(now + BEFORE_DEADLINE)
        rows = db.rows(mempool_watch.ASKED, after=opened_after_ms)
        rows += db.rows(mempool_watch.ENDING, before=ends_before_ms)
        rows += db.rows(mempool_watch.EXPECTING)
    by_id = {row.id: row for row in rows}
    # Outputs that vanished before this time do not matter any more.
    vanished_since = now - 2 * settings.network.gone_after
    vanished_after_ms = to_ms(vanished_since) - 1  # the query excludes this time
    keys: list[Values] = []
    for id in by_id:
        keys.append({"id": id, "vanished_after": vanished_after_ms})
    outputs = at_once.rows(db, mempool_watch.UNSETTLED, keys)
    unsettled = group_by(outputs, lambda output: output.invoice_id)
    watched = []
    for id, row in by_id.items():
        invoice = _watched_invoice(row, unsettled[id], now)
        watched.append(invoice)
    return watched


def _watched_invoice(
    row: Invoice,
    outputs: Sequence[Output],
    now: datetime,
) -> WatchedInvoice:
    """Converts the row to a WatchedInvoice. `outputs` are those without a payment yet."""
    present = [output for output in outputs if output.vanished_ms is None]
    present_sats = sum(output.amount_sats for output in present)
    waiting_since = [
        from_ms(output.first_seen_ms)
        for output in present
        if output.block_height is None
    ]
    vanished_ms = [
        output.vanished_ms for output in outputs if output.vanished_ms is not None
    ]
    return WatchedInvoice(
        id=row.id,
        status=row.status,
        checked_at=_past(row.checked_ms, now),
        asked_at=_past(row.asked_ms, now),
        opened_at=_past(row.asked_since, now),
        came_at=max(waiting_since, default=None),
        is_covered=present_sats >= row.amount_sats,
        vanished_at=_past(max(vanished_ms, default=None), now),
        expires_at=from_ms_or_none(row.expires_ms),
        failures=row.failures,
        failed_at=_past(row.failed_ms, now),
    )


def _past(ms: int | None, now: datetime) -> datetime:
    """Returns the stored time; NEVER if it is None or in the future.

    A time in the future was stored while the clock was ahead.
    """
    if ms is None or ms > to_ms(now) + AHEAD_MS:
        return NEVER
    return from_ms(ms)


def next_look(db: Database, settings: Settings, row: Invoice, now: datetime) -> str:
    """Returns a phrase that says when and why the mempool is queried next for the invoice.

    Even without such a query, a payment is found in its block.
    """
    (invoice,) = watched_invoices(db, settings, now, [row])
    gone_after = settings.network.gone_after
    per_hour = settings.explorer_calls_per_hour
    for minutes in range(AHEAD_MIN):
        look = due_look(invoice, gone_after, per_hour, now + minutes * MINUTE)
        if look is None:
            continue
        if minutes == 0:
            return f"the next check: {look.reason}"
        return f"in {minutes} min: {look.reason}"
    if invoice.status != InvoiceStatus.OPEN or invoice.is_covered:
        return "not until more money comes"
    return "when somebody opens its page, or its deadline is near"


def missing_outputs(db: Database, look: Look) -> list[Output]:
    """Returns the stored unconfirmed outputs that the mempool no longer shows in `look`.

    Each of them is in a new block, or was dropped or replaced.
    """
    shown_outpoints = {output.outpoint for output in look.mempool.outputs}
    missing = []
    for row in db.rows(mempool_watch.WAITING, invoice_id=look.invoice_id):
        outpoint = (row.txid, row.vout)
        if outpoint not in shown_outpoints:
            missing.append(row)
    return missing
