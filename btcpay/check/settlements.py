"""The consequences of scans: all rows are read at once, and each invoice is decided by itself."""

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

LONG_HISTORY = 1000  # of one invoice; receivers may be sent each of them
_SEEN = ("seen", "seen again")
_VANISHED = ("vanished",)


class InvoiceOutcome(NamedTuple):
    """An invoice's row, the scan of its address, and what follows from it.

    `noted`: the changes for history and receivers; of a long history, only those in a block.
    """

    row: Invoice
    scan: Scan
    rules: Rules
    outcome: Outcome
    noted: Sequence[Change]

    @property
    def is_covered(self) -> bool:
        """True if the whole sum is seen for the first time."""
        is_open = self.row.status == InvoiceStatus.OPEN and self.row.covered_at is None
        return is_open and not self.outcome.verdict.missing_sats

    @property
    def has_ended(self) -> bool:
        return self.outcome.verdict.status != self.row.status

    @property
    def has_changed(self) -> bool:
        out = self.outcome
        came = out.changes or out.forgotten or out.payments or out.settling
        return self.has_ended or bool(came)


def settle_scans(
    db: Database, settings: Settings, scans: Mapping[str, Scan], now: datetime
) -> list[InvoiceOutcome]:
    """The consequences of each scan, by rows that are read behind the locks. Raises BadRow."""
    rows = at_once.rows(db, invoices.WHOLE, [{"id": id} for id in scans])
    known = known_outputs(db, scans)
    lengths = dict(
        at_once.rows(db, events.LENGTH, [{"invoice_id": id} for id in scans])
    )
    found = []
    for row in rows:
        scan = scans[row.id]
        rules = rules_for(settings, row)
        is_long = lengths.get(row.id, 0) >= LONG_HISTORY
        outcome = settle(invoice_of(row), known[row.id], scan, rules, now)
        noted = [one for one in outcome.changes if one.after.block or not is_long]
        found.append(InvoiceOutcome(row, scan, rules, outcome, noted))
    return found


def history_of(
    case: InvoiceOutcome, made: Sequence[Payment], now: datetime
) -> Iterator[Values]:
    """The entries for a scan that `made` payments: its outputs, then these."""
    explorer = {"explorer": case.scan.explorer}
    for change in case.noted:
        if change.kind:
            detail = _detail(change) | explorer
            yield history_entry(case.row.id, Kind(change.kind), detail, now)
    blocks = {receipt.txid: _place(receipt.block) for receipt in case.outcome.payments}
    for row in made:
        detail = {"id": row.id, "txid": row.tx_hash, "amount_sats": row.amount_sats}
        detail |= {"block": blocks[row.tx_hash]} | explorer
        yield history_entry(case.row.id, Kind.PAYMENT, detail, now)


def _detail(change: Change) -> dict[str, Any]:
    output = change.after
    key = {"txid": output.txid, "vout": output.vout, "amount_sats": output.amount_sats}
    if change.kind in (Kind.SEEN, Kind.SEEN_AGAIN, Kind.MOVED):
        return key | {"block": output.block and _place(output.block)}
    if change.kind == Kind.SPENT:
        return key | {"height": output.spent_height}
    return key


def _place(block: Block) -> dict[str, Any]:
    return {"height": block.height, "hash": block.hash}


def news_of(case: InvoiceOutcome, made: Sequence[Payment]) -> list[News]:
    """The events of a scan that `made` payments, in order.

    An output that counts at once is not first announced as on its way.
    """
    counted = {payment.tx_hash for payment in made}
    on_its_way = [one for one in case.noted if one.after.txid not in counted]
    news = _of_transactions(EventKind.INVOICE_PAYMENT_SEEN, on_its_way, _SEEN)
    news += _of_transactions(EventKind.INVOICE_PAYMENT_VANISHED, case.noted, _VANISHED)
    found = {one.after.txid for one in case.noted if one.kind in _SEEN}
    for payment in made:
        is_first = payment.tx_hash in found
        news.append(
            payment_news(EventKind.PAYMENT_RECEIVED, payment, is_first_seen=is_first)
        )
    ended = f"invoice.{case.outcome.verdict.status}"
    return news + ([News(EventKind(ended))] if case.has_ended else [])


def _of_transactions(
    kind: EventKind, changes: Iterable[Change], words: Sequence[str]
) -> list[News]:
    """News of each transaction, with the sum of its outputs to the address."""
    sums: dict[str, int] = {}
    for change in changes:
        if change.kind in words:
            txid = change.after.txid
            sums[txid] = sums.get(txid, 0) + change.after.amount_sats
    return [
        News(kind, {"transaction": {"tx_hash": txid, "amount_sats": amount_sats}})
        for txid, amount_sats in sums.items()
    ]


def payment_news(kind: EventKind, row: Payment, **more: bool) -> News:
    payment = {one.name: getattr(row, one.name) for one in Payment.PUBLIC}
    return News(kind, {"payment": payment, **more})
