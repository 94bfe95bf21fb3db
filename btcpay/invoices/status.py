"""The state of an invoice: its rows as values, the verdict on them, and its history."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from btcpay.settings.settings import Settings
from btcpay.settlement.decide import decide
from btcpay.settlement.merge import HISTORY_AFTER
from btcpay.settlement.values import Block, Invoice, Output, Rules, Scan, Verdict
from btcpay.values.errors import BadRow
from btcpay.values.money import stored_amount
from btcpay.values.times import from_ms, from_ms_or_none, to_ms
from storage import at_once, models
from storage.database import Database, Values
from storage.queries import attentions, events, invoices, payments

_OUTPOINT = re.compile("[0-9a-f]{64}:[0-9]{1,10}")


def find_invoice(db: Database, invoice_id: str) -> models.Invoice:
    """Returns the whole row. Raises CommandError if there is none."""
    return db.get_or_fail(invoices.WHOLE, f"invoice {invoice_id!r}", id=invoice_id)


def rules_for(settings: Settings, row: models.Invoice | payments.OutputWith) -> Rules:
    """Returns the conditions for payments to an invoice. Raises BadRow.

    The settings and the amount determine them. The shop may have set stricter ones for
    this invoice.
    """
    confirmations = settings.confirmations.for_usd(stored_amount(row.amount_usd_quote))
    tolerance_percent = settings.underpayment_tolerance_percent
    if row.tolerance_percent is not None:
        own_percent = stored_amount(row.tolerance_percent)
        tolerance_percent = min(tolerance_percent, own_percent)
    return Rules(
        max(confirmations, row.confirmations or 1),
        tolerance_percent,
        settings.network.gone_after,
    )


def invoice_of(row: models.Invoice) -> Invoice:
    """Returns the row as the value that settlement uses. Raises BadRow."""
    return Invoice(
        id=row.id,
        status=row.status,
        amount_sats=row.amount_sats,
        created_at=from_ms(row.created_ms),
        expires_at=from_ms_or_none(row.expires_ms),
        tx_hash=row.tx_hash,
        paid_at=from_ms_or_none(row.paid_ms),
        covered_at=from_ms_or_none(row.covered_ms),
        at_till=row.gratuity is not None,
        of_bill=row.bill_id is not None,
        above_height=row.above_height,
    )


def output_of(row: payments.OutputWith) -> Output:
    """Returns the row as the value that settlement uses. Raises BadRow."""
    block = None
    if row.block_height is not None:
        block = Block(
            row.block_height, row.block_hash or "", from_ms(row.block_time_ms or 0)
        )
    return Output(
        txid=row.txid,
        vout=row.vout,
        amount_sats=row.amount_sats,
        first_seen_at=from_ms(row.first_seen_ms),
        seen_waiting=bool(row.seen_waiting),
        inputs=inputs_of(row),
        feerate=row.feerate,
        vanished_at=from_ms_or_none(row.vanished_ms),
        replaced_height=row.replaced_height,
        block=block,
        position=row.position,
        spent_height=row.spent_height,
        credited=row.payment_id is not None,
        settles=row.settled_invoice_id is not None,
    )


def inputs_of(row: models.Output) -> tuple[str, ...]:
    """Returns the outpoints that the output's transaction spends, each as `txid:vout`.

    Raises BadRow.
    """
    refusal = f"the inputs of {row.txid} are no outpoints"
    try:
        inputs = json.loads(row.inputs or "[]")
    except ValueError:
        raise BadRow(refusal) from None
    if not isinstance(inputs, list):
        raise BadRow(refusal)
    for outpoint in inputs:
        if not _OUTPOINT.fullmatch(str(outpoint)):
            raise BadRow(refusal)
    return tuple(inputs)


def known_outputs(db: Database, scans: Mapping[str, Scan]) -> dict[str, list[Output]]:
    """Returns the stored outputs that each scan may change, by invoice id. Raises BadRow.

    A vanished output is among them only if it vanished recently, or if the scan shows
    it again.
    """
    of_scans: list[Values] = []
    for id, scan in scans.items():
        since_ms = to_ms(scan.asked_at - HISTORY_AFTER) - 1
        of_scans.append({"invoice_id": id, "vanished_after": since_ms})
    rows = at_once.rows(db, payments.KNOWN, of_scans)
    keys = {(row.invoice_id, row.txid) for row in rows}
    shown_again: list[Values] = []
    for id, scan in scans.items():
        for txid in sorted(_txids_of(scan)):
            if (id, txid) not in keys:
                shown_again.append({"invoice_id": id, "txid": txid})
    rows += at_once.rows(db, payments.VANISHED, shown_again)
    outputs: dict[str, list[Output]] = {id: [] for id in scans}
    for row in rows:
        outputs[row.invoice_id].append(output_of(row))
    return outputs


def _txids_of(scan: Scan) -> set[str]:
    """Returns the ids of the transactions that a scan shows or reports as replaced."""
    waiting = scan.waiting or ()
    outputs = [*waiting, *scan.confirmed]
    return {output.txid for output in outputs} | set(scan.replaced)


def checked_ms(row: invoices.InvoiceWith) -> int | None:
    """Returns when blocks or the mempool were last checked for this invoice, in ms.

    That is when every block was last read or when the mempool was last queried,
    whichever is later. None if neither has happened since the invoice was made.
    """
    read_ms = int(row.read_ms or 0)
    has_read_since = read_ms >= row.created_ms
    if not has_read_since:
        return row.checked_ms
    return max(read_ms, row.checked_ms or 0)


def verdict_on(
    outputs: Iterable[payments.OutputWith],
    settings: Settings,
    row: models.Invoice,
    now: datetime,
    tip_height: int | None,
) -> Verdict:
    """Returns the verdict on these outputs, some of which may have vanished.

    Raises BadRow.
    """
    invoice = invoice_of(row)
    values = [output_of(output) for output in outputs]
    rules = rules_for(settings, row)
    return decide(
        invoice,
        values,
        tip_height or 0,
        None,
        rules,
        now,
        credited_only=True,
    )


def unapplied_sats(verdict: Verdict) -> int:
    """Returns the satoshis of payments that settle nothing.

    Payments that are older than the invoice do not count.
    """
    unapplied = [
        receipt
        for receipt in verdict.receipts
        if receipt.came_for_it and not receipt.settles
    ]
    return sum(receipt.amount_sats for receipt in unapplied)


def figures(row: models.Invoice, verdict: Verdict, tip_height: int) -> Values:
    """Returns the amounts that pages show, as parameters of `invoices.KEEP`.

    Store them in the transaction of the change.
    """
    newest_height = None
    if verdict.confirmations:
        newest_height = tip_height + 1 - verdict.confirmations
    return {
        "id": row.id,
        "received_sats": verdict.received_sats,
        "unconfirmed_sats": verdict.unconfirmed_sats,
        "unapplied_sats": unapplied_sats(verdict),
        "coming_unapplied_sats": verdict.coming_unapplied_sats,
        "newest_height": newest_height,
    }


@dataclass(frozen=True)
class Story:
    """An invoice's row with its verdict, outputs and history.

    The row's `attention` is the reason why it needs attention, a key of settlement's
    REASONS. `confirmations_needed` is the number that a payment needs. `outputs`
    includes vanished ones. `events` are in order, the oldest first. `checked_ms` is the
    result of the function of that name.
    """

    row: invoices.InvoiceWith
    verdict: Verdict
    confirmations_needed: int
    outputs: list[payments.OutputWith]
    events: list[models.Event]
    checked_ms: int | None


def find_story(
    db: Database,
    settings: Settings,
    invoice_id: str,
    now: datetime,
) -> Story:
    """Returns the story of the invoice. Raises CommandError if there is no such invoice."""
    row = db.get_or_fail(attentions.INVOICE, f"invoice {invoice_id!r}", id=invoice_id)
    return story_of(db, settings, row, now)


def story_of(
    db: Database,
    settings: Settings,
    row: invoices.InvoiceWith,
    now: datetime,
) -> Story:
    """Returns the story of a row of `attentions.INVOICE`. It takes two statements."""
    outputs = db.rows(payments.OUTPUTS, invoice_id=row.id)
    return Story(
        row=row,
        verdict=verdict_on(outputs, settings, row, now, row.tip_height),
        confirmations_needed=rules_for(settings, row).confirmations,
        outputs=outputs,
        events=db.rows(events.OF_INVOICE, invoice_id=row.id),
        checked_ms=checked_ms(row),
    )
