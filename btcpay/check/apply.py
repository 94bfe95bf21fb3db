"""Stores the changes that scans cause in invoices, for many scans in one transaction.

A scan is new data from blocks or a mempool about the address of one invoice.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from btcpay.check.report import Report
from btcpay.check.settlements import Settlement, history_of, news_of, settle_scans
from btcpay.check.store import add_payments, store_outputs_and_proofs
from btcpay.invoices.attention import update_attentions
from btcpay.invoices.history import End, finish
from btcpay.notify.publish import News
from btcpay.settings.settings import Settings
from btcpay.settlement.values import Scan
from btcpay.values.errors import BeyondMoney
from btcpay.values.times import to_ms
from storage import at_once
from storage.database import Database, Values, group_by
from storage.models import Payment
from storage.queries import events, invoices
from storage.queries.totals import balances, gaps

log = logging.getLogger(__name__)


def try_apply(
    db: Database,
    settings: Settings,
    scans: Mapping[str, Scan],
    now: datetime,
    report: Report,
) -> set[str]:
    """Stores the changes that the scans cause, with `apply`.

    A scan is new data about an invoice's address. `scans` has the scans by invoice id.
    Returns the ids of the invoices whose changes could not be stored. Each changed
    status and each failure is added to the report.

    An error in one invoice does not stop the others: if the database transaction for
    all of them fails, each half is tried in a transaction of its own. An error is
    raised only if the connection to the database is lost.
    """
    if not scans:
        return set()
    try:
        settlements = apply(db, settings, scans, now)
    except Exception as error:  # noqa: BLE001 - the edge of the loops over invoices
        if db.has_lost_connection:
            raise
        if len(scans) > 1:
            log.warning("%d invoices are settled by halves: %s", len(scans), error)
            return _try_halves(db, settings, scans, now, report)
        (invoice_id,) = scans
        _report_failure(invoice_id, error, report)
        return {invoice_id}
    for settlement in settlements:
        if settlement.has_ended:
            report.new_statuses[settlement.row.id] = settlement.outcome.verdict.status
    return set()


def _try_halves(
    db: Database,
    settings: Settings,
    scans: Mapping[str, Scan],
    now: datetime,
    report: Report,
) -> set[str]:
    """Does the work of `try_apply` for each half of the scans, one after the other."""
    failed: set[str] = set()
    for half in _halves(scans):
        failed |= try_apply(db, settings, half, now, report)
    return failed


def _report_failure(invoice_id: str, error: Exception, report: Report) -> None:
    report.failed.append(invoice_id)
    if isinstance(error, BeyondMoney):  # a false response, and no error of this program
        log.warning("%s could not be settled: %s", invoice_id, error)
    else:
        log.error("%s could not be settled: %s", invoice_id, error, exc_info=error)


def _halves(scans: Mapping[str, Scan]) -> Iterator[dict[str, Scan]]:
    ids = list(scans)
    middle = len(ids) // 2
    first_half = ids[:middle]
    second_half = ids[middle:]
    for half in (first_half, second_half):
        yield {id: scans[id] for id in half}


def apply(
    db: Database,
    settings: Settings,
    scans: Mapping[str, Scan],
    now: datetime,
) -> list[Settlement]:
    """Stores all changes that the scans cause, in one database transaction.

    Returns a `Settlement` for each invoice, with its changes. Any error rolls all
    changes back. Raises BeyondMoney if outputs of the mempool would make a balance
    exceed 21 million bitcoin. Outputs that a block proves never raise this error.
    """
    ids: list[Values] = [{"id": id} for id in scans]
    # Only a mempool can invent outputs. Changes that blocks prove must be stored.
    has_mempool_data = any(scan.waiting is not None for scan in scans.values())
    with db.write():
        rows = at_once.rows(db, invoices.WHOLE, ids)
        balances.lock(db, *(row.merchant_id for row in rows))
        settlements = settle_scans(db, settings, scans, now)
        with balances.update_balances(db, scans, bounded=has_mempool_data):
            store_outputs_and_proofs(db, settlements)
            new_payments = add_payments(db, settlements, now)
        payments = group_by(new_payments, lambda payment: payment.address_invoice_id)
        _record_history(db, settlements, payments, now)
        _note_gaps(db, settlements)
        _note_covered(db, settlements, now)
        ends = [_end(settlement) for settlement in settlements if settlement.has_ended]
        finish(db, ends, now)
        update_attentions(db, settings, _news_by_invoice(settlements, payments), now)
    return settlements


def _news_by_invoice(
    settlements: Sequence[Settlement],
    payments: Mapping[str, Sequence[Payment]],
) -> dict[str, list[News]]:
    """Returns the events about each invoice that has changed, by invoice id.

    `payments` are the new payments by invoice id.
    """
    news: dict[str, list[News]] = {}
    for settlement in settlements:
        if settlement.has_changed:
            id = settlement.row.id
            news[id] = news_of(settlement, payments[id])
    return news


def _record_history(
    db: Database,
    settlements: Sequence[Settlement],
    payments: Mapping[str, Sequence[Payment]],
    now: datetime,
) -> None:
    """Adds the changes to the invoices' histories.

    `payments` are the new payments by invoice id.
    """
    entries: list[Values] = []
    for settlement in settlements:
        entries += history_of(settlement, payments[settlement.row.id], now)
    at_once.run(db, events.RECORD, entries)


def _note_gaps(db: Database, settlements: Sequence[Settlement]) -> None:
    changed_rows = []
    for settlement in settlements:
        if settlement.outcome.changes:
            changed_rows.append(settlement.row)
    gaps.note(db, changed_rows)


def _note_covered(
    db: Database,
    settlements: Sequence[Settlement],
    now: datetime,
) -> None:
    covered: list[Values] = []
    for settlement in settlements:
        if settlement.is_covered:
            covered.append({"id": settlement.row.id, "at": to_ms(now)})
    at_once.run(db, invoices.COVER, covered)


def _end(settlement: Settlement) -> End:
    verdict = settlement.outcome.verdict
    detail = {"reason": verdict.reason, "explorer": settlement.scan.explorer}
    paid_ms = None
    if verdict.paid_at:
        paid_ms = to_ms(verdict.paid_at)
    return End(settlement.row, verdict.status, detail, verdict.tx_hash, paid_ms)
