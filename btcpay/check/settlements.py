"""Computes the changes that scans cause in invoices, with history entries and events.

A scan is new data about an invoice's address. All rows are loaded together; each
invoice is settled separately.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from btcpay.invoices.history import history_entry
from btcpay.invoices.status import invoice_of, known_outputs, rules_for
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import News
from btcpay.settings.settings import Settings
from btcpay.settlement.settle import Change, Outcome, settle
from btcpay.settlement.values import Block, Rules, Scan
from btcpay.values.statuses import InvoiceStatus
from storage import at_once
from storage.database import Database, Values
from storage.models import Invoice, Payment
from storage.queries import events, invoices
from storage.queries.events import Kind

# From this many entries on, an invoice's history records only changes in blocks. This limits the
# history and the notifications that false data of a mempool can cause.
LONG_HISTORY = 1000
_SEEN = ("seen", "seen again")
_VANISHED = ("vanished",)


class Settlement(NamedTuple):
    """An invoice's row, a scan of its address, and the changes that follow (`outcome`).

    A scan is new data about the address. `rules` are the merchant's conditions.
    `history_changes` are the changes of outputs that become entries of the invoice's
    history, and events. If the history is long, these are only changes of outputs in a
    block.
    """

    row: Invoice
    scan: Scan
    rules: Rules
    outcome: Outcome
    history_changes: Sequence[Change]

    @property
    def is_covered(self) -> bool:
        """True if outputs of at least the amount have been seen for the first time."""
        is_open = self.row.status == InvoiceStatus.OPEN and self.row.covered_ms is None
        return is_open and not self.outcome.verdict.missing_sats

    @property
    def has_ended(self) -> bool:
        return self.outcome.verdict.status != self.row.status

    @property
    def has_changed(self) -> bool:
        """True if the invoice's status, its outputs or its payments change."""
        outcome = self.outcome
        has_changed_outputs = bool(outcome.changes or outcome.forgotten)
        has_changed_payments = bool(outcome.payments or outcome.settling)
        return self.has_ended or has_changed_outputs or has_changed_payments


def settle_scans(
    db: Database,
    settings: Settings,
    scans: Mapping[str, Scan],
    now: datetime,
) -> list[Settlement]:
    """Computes the changes that each scan causes in its invoice. Stores nothing.

    A scan is new data about an invoice's address. `scans` has the scans by invoice id.
    The caller must have locked the merchants' balances. Raises BadRow if a stored value
    is invalid.
    """
    ids: list[Values] = [{"id": id} for id in scans]
    invoice_ids: list[Values] = [{"invoice_id": id} for id in scans]
    rows = at_once.rows(db, invoices.WHOLE, ids)
    outputs = known_outputs(db, scans)
    lengths = dict(at_once.rows(db, events.LENGTH, invoice_ids))
    settlements = []
    for row in rows:
        scan = scans[row.id]
        rules = rules_for(settings, row)
        outcome = settle(invoice_of(row), outputs[row.id], scan, rules, now)
        changes = outcome.changes
        has_long_history = lengths.get(row.id, 0) >= LONG_HISTORY
        if has_long_history:
            changes = [change for change in changes if change.after.block]
        settlements.append(Settlement(row, scan, rules, outcome, changes))
    return settlements


def history_of(
    settlement: Settlement,
    payments: Sequence[Payment],
    now: datetime,
) -> Iterator[Values]:
    """Yields entries for an invoice's history: first changed outputs, then new payments.

    `payments` are the rows of the new payments.
    """
    invoice_id = settlement.row.id
    source = {"explorer": settlement.scan.explorer}
    for change in settlement.history_changes:
        if change.kind:
            detail = _detail(change) | source
            yield history_entry(invoice_id, Kind(change.kind), detail, now)
    block_by_txid = {
        receipt.txid: _block_detail(receipt.block)
        for receipt in settlement.outcome.payments
    }
    for payment in payments:
        detail = {
            "id": payment.id,
            "txid": payment.tx_hash,
            "amount_sats": payment.amount_sats,
            "block": block_by_txid[payment.tx_hash],
        }
        yield history_entry(invoice_id, Kind.PAYMENT, detail | source, now)


def _detail(change: Change) -> dict[str, Any]:
    """Returns the detail of the change's entry in the invoice's history.

    Its fields depend on the kind of the change (`Kind` of storage/queries/events.py).
    """
    output = change.after
    detail: dict[str, Any] = {
        "txid": output.txid,
        "vout": output.vout,
        "amount_sats": output.amount_sats,
    }
    if change.kind in (Kind.SEEN, Kind.SEEN_AGAIN, Kind.MOVED):
        detail["block"] = None
        if output.block:
            detail["block"] = _block_detail(output.block)
    if change.kind == Kind.SPENT:
        detail["height"] = output.spent_height
    return detail


def _block_detail(block: Block) -> dict[str, Any]:
    return {"height": block.height, "hash": block.hash}


def news_of(settlement: Settlement, payments: Sequence[Payment]) -> list[News]:
    """Returns the events about an invoice's changes, in the order to send them.

    `payments` are the rows of the new payments. A Bitcoin transaction that becomes a
    payment at once has no "payment seen" event.
    """
    changes = settlement.history_changes
    payment_txids = {payment.tx_hash for payment in payments}
    without_payment = [
        change for change in changes if change.after.txid not in payment_txids
    ]
    news = _transaction_news(EventKind.INVOICE_PAYMENT_SEEN, without_payment, _SEEN)
    news += _transaction_news(EventKind.INVOICE_PAYMENT_VANISHED, changes, _VANISHED)
    seen_txids = {change.after.txid for change in changes if change.kind in _SEEN}
    for payment in payments:
        is_first_seen = payment.tx_hash in seen_txids
        received = payment_news(
            EventKind.PAYMENT_RECEIVED, payment, is_first_seen=is_first_seen
        )
        news.append(received)
    if settlement.has_ended:
        status = settlement.outcome.verdict.status
        news.append(News(EventKind(f"invoice.{status}")))
    return news


def _transaction_news(
    kind: EventKind,
    changes: Iterable[Change],
    change_kinds: Sequence[str],
) -> list[News]:
    """Returns an event for each transaction, with the sum of its outputs to the address.

    Only changes whose kind is in `change_kinds` count.
    """
    sats_by_txid: dict[str, int] = {}
    for change in changes:
        if change.kind in change_kinds:
            txid = change.after.txid
            before_sats = sats_by_txid.get(txid, 0)
            sats_by_txid[txid] = before_sats + change.after.amount_sats
    news = []
    for txid, amount_sats in sats_by_txid.items():
        transaction = {"tx_hash": txid, "amount_sats": amount_sats}
        news.append(News(kind, {"transaction": transaction}))
    return news


def payment_news(kind: EventKind, row: Payment, **more: bool) -> News:
    """Returns an event with the payment's public columns, and the fields in `more`."""
    payment = {field.name: getattr(row, field.name) for field in Payment.PUBLIC}
    return News(kind, {"payment": payment, **more})
