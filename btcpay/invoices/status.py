"""Loads the state of an invoice: its payments, the verdict on them, and its history.

The verdict is the result of `btcpay.settlement.decide`: whether the invoice is paid,
how much was received, and how much is missing.
"""

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
    """Returns the invoice's row with all columns.

    Raises CommandError if there is no such invoice.
    """
    return db.get_or_fail(invoices.WHOLE, f"invoice {invoice_id!r}", id=invoice_id)


def rules_for(settings: Settings, row: models.Invoice | payments.OutputWith) -> Rules:
    """Returns the rules for payments to an invoice, such as the confirmations needed.

    The settings and the invoice's amount determine them. The shop may have set stricter
    rules for this invoice. Raises BadRow if a stored value is invalid.
    """
    confirmations = settings.confirmations.for_usd(stored_amount(row.amount_usd_quote))
    tolerance_percent = settings.underpayment_tolerance_percent
    if row.tolerance_percent is not None:
        own_percent = stored_amount(row.tolerance_percent)
        tolerance_percent = min(tolerance_percent, own_percent)
    return Rules(
        confirmations=max(confirmations, row.confirmations or 1),
        tolerance_percent=tolerance_percent,
        gone_after=settings.network.gone_after,
    )


def invoice_of(row: models.Invoice) -> Invoice:
    """Converts an invoice's row to the value that `btcpay.settlement` uses.

    Raises BadRow if a stored time is invalid.
    """
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
    """Converts an output's row to the value that `btcpay.settlement` uses.

    Raises BadRow if a stored value is invalid.
    """
    block = None
    if row.block_height is not None:
        block = Block(
            height=row.block_height,
            hash=row.block_hash or "",
            mined_at=from_ms(row.block_time_ms or 0),
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

    Raises BadRow if the stored text is no list of outpoints.
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
    """Returns the stored outputs that each scan may change, by invoice id.

    A scan has new facts about the outputs to one invoice's address. An output that
    vanished from the mempool is included only if it vanished within HISTORY_AFTER before
    the scan, or if the scan names its transaction, as shown or as replaced. Raises
    BadRow if a stored value is invalid.
    """
    keys: list[Values] = []
    for id, scan in scans.items():
        since_ms = to_ms(scan.asked_at - HISTORY_AFTER)
        after_ms = since_ms - 1  # the query excludes this time
        keys.append({"invoice_id": id, "vanished_after": after_ms})
    rows = at_once.rows(db, payments.KNOWN, keys)
    # What vanished earlier is loaded only if its scan names it.
    keys = _txids_not_in(rows, scans)
    rows += at_once.rows(db, payments.VANISHED_OF_TX, keys)
    outputs: dict[str, list[Output]] = {id: [] for id in scans}
    for row in rows:
        outputs[row.invoice_id].append(output_of(row))
    return outputs


def _txids_not_in(
    rows: Iterable[payments.OutputWith],
    scans: Mapping[str, Scan],
) -> list[Values]:
    """Returns the transactions that the scans name, without those that are in `rows`.

    Each is given as the parameters of `payments.VANISHED_OF_TX`.
    """
    loaded = {(row.invoice_id, row.txid) for row in rows}
    keys: list[Values] = []
    for id, scan in scans.items():
        for txid in sorted(_txids_of(scan)):
            if (id, txid) not in loaded:
                keys.append({"invoice_id": id, "txid": txid})
    return keys


def _txids_of(scan: Scan) -> set[str]:
    """Returns the ids of the transactions that a scan shows or reports as replaced."""
    waiting = scan.waiting or ()
    outputs = [*waiting, *scan.confirmed]
    return {output.txid for output in outputs} | set(scan.replaced)


def checked_ms(row: invoices.InvoiceWith) -> int | None:
    """Returns when this invoice's payments were last looked for, in Unix milliseconds.

    This is the later of two times: when the service had last searched every block up
    to the tip, and when it last queried the mempool for this invoice. Returns None if
    neither has happened since the invoice was made.
    """
    read_ms = int(row.read_ms or 0)
    if read_ms < row.created_ms:  # the blocks were not read since the invoice was made
        return row.checked_ms
    return max(read_ms, row.checked_ms or 0)


def verdict_on(
    outputs: Iterable[payments.OutputWith],
    settings: Settings,
    row: models.Invoice,
    now: datetime,
    tip_height: int | None,
) -> Verdict:
    """Returns whether these outputs pay the invoice, and how much is missing.

    Only outputs that are stored as payments count as received. Some outputs may have
    vanished from the mempool. `tip_height` is the height of the best chain; None if no
    header is stored. Raises BadRow if a stored value is invalid.
    """
    return decide(
        invoice_of(row),
        [output_of(output) for output in outputs],
        tip_height=tip_height or 0,
        ends_at=None,
        rules=rules_for(settings, row),
        now=now,
        credited_only=True,
    )


def unapplied_sats(verdict: Verdict) -> int:
    """Returns the satoshis of the confirmed payments that do not pay the invoice.

    These came too late, for example. Payments that are older than the invoice are left
    out.
    """
    unapplied = [
        receipt
        for receipt in verdict.receipts
        if receipt.came_for_it and not receipt.settles
    ]
    return sum(receipt.amount_sats for receipt in unapplied)


def figures(row: models.Invoice, verdict: Verdict, tip_height: int) -> Values:
    """Returns the amounts that pages show, as parameters of the statement `invoices.KEEP`.

    Store them in the database transaction that changes the payments.
    """
    newest_height = None
    if verdict.confirmations:
        # A block at the tip has one confirmation.
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
    """An invoice with the verdict on its payments, its outputs and its history.

    - `row.attention`: why the invoice needs attention, as a key of REASONS in
      `btcpay/settlement/attention.py`; None if it needs none.
    - `confirmations_needed`: the number of confirmations that a payment needs.
    - `outputs`: all known outputs, also those that have vanished from the mempool.
    - `events`: the history, oldest first.
    - `checked_ms`: when payments were last looked for, in Unix milliseconds; None if
      that has not happened yet.
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
    """Loads an invoice with its payments and its history, by its id.

    Raises CommandError if there is no such invoice, and BadRow if a stored value is
    invalid.
    """
    row = db.get_or_fail(attentions.INVOICE, f"invoice {invoice_id!r}", id=invoice_id)
    return story_of(db, settings, row, now)


def story_of(
    db: Database,
    settings: Settings,
    row: invoices.InvoiceWith,
    now: datetime,
) -> Story:
    """Loads the payments and the history of an invoice, with two SQL statements.

    `row` is a row of the query `attentions.INVOICE`. Raises BadRow if a stored value is
    invalid.
    """
    outputs = db.rows(payments.OUTPUTS, invoice_id=row.id)
    return Story(
        row=row,
        verdict=verdict_on(outputs, settings, row, now, row.tip_height),
        confirmations_needed=rules_for(settings, row).confirmations,
        outputs=outputs,
        events=db.rows(events.OF_INVOICE, invoice_id=row.id),
        checked_ms=checked_ms(row),
    )
