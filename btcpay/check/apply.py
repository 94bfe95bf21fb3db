"""Writes the consequences of scans of addresses, of many in one transaction."""

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from btcpay.check.facts import is_late
from btcpay.check.outcomes import InvoiceOutcome, history_of, news_of, settle_scans
from btcpay.check.report import Report
from btcpay.invoices.attention import update_attentions
from btcpay.invoices.history import End, finish
from btcpay.proofs.document import extend_document
from btcpay.settings.settings import Settings
from btcpay.settlement.values import Output, Receipt, Scan
from btcpay.values.errors import BeyondMoney
from btcpay.values.ids import new_id
from btcpay.values.money import value_of
from btcpay.values.times import to_ms
from storage import at_once
from storage.database import Database, Values, grouped
from storage.models import Invoice, Payment
from storage.queries import blocks, events, invoices, merchants, payments
from storage.queries.totals import balances, days, gaps

log = logging.getLogger(__name__)


def try_apply(
    db: Database,
    settings: Settings,
    scans: Mapping[str, Scan],
    now: datetime,
    report: Report,
) -> set[str]:
    """Applies the scans of these invoices and reports each new status; returns the ids that failed.

    An error of one invoice must not stop the others: the next is somebody's money too. So where all
    together fail, each half is tried by itself.
    """
    if not scans:
        return set()
    try:
        cases = apply(db, settings, scans, now)
    except Exception as error:  # noqa: BLE001 - the edge of the loops over invoices
        if len(scans) == 1:
            is_invented = isinstance(
                error, BeyondMoney
            )  # by a mempool: no fault of ours
            level = logging.WARNING if is_invented else logging.ERROR
            log.log(
                level,
                "%s could not be settled: %s",
                *scans,
                error,
                exc_info=not is_invented,
            )
            report.failed += scans
            return set(scans)
        log.warning("%d invoices are settled by halves: %s", len(scans), error)
        ids = list(scans)
        half = len(scans) // 2
        parts = ({id: scans[id] for id in some} for some in (ids[:half], ids[half:]))
        return {
            id for part in parts for id in try_apply(db, settings, part, now, report)
        }
    report.changed |= {
        it.row.id: it.outcome.verdict.status for it in cases if it.has_ended
    }
    return set()


def apply(
    db: Database, settings: Settings, scans: Mapping[str, Scan], now: datetime
) -> list[InvoiceOutcome]:
    """Writes all consequences of the scans, which it returns, or none.

    Raises BeyondMoney for sightings of more money than can exist, never for proven outputs.
    """
    ids: list[Values] = [{"id": id} for id in scans]
    with db.write():
        balances.lock(
            db, *(row.merchant_id for row in at_once.rows(db, invoices.WHOLE, ids))
        )
        cases = settle_scans(db, settings, scans, now)
        bounded = any(scan.waiting is not None for scan in scans.values())
        with balances.kept(db, scans, bounded):
            _put(db, cases)
            made = grouped(
                _add_payments(db, cases, now), lambda one: one.address_invoice_id
            )
        entries = [
            one for case in cases for one in history_of(case, made[case.row.id], now)
        ]
        at_once.run(db, events.RECORD, entries)
        gaps.note(db, [case.row for case in cases if case.outcome.changes])
        covered = [case.row.id for case in cases if case.is_covered]
        at_once.run(
            db, invoices.COVER, [{"id": id, "at": to_ms(now)} for id in covered]
        )
        finish(db, [_end(case) for case in cases if case.has_ended], now)
        news = {
            case.row.id: news_of(case, made[case.row.id])
            for case in cases
            if case.has_changed
        }
        update_attentions(db, settings, news, now)
    return cases


def _put(db: Database, cases: Sequence[InvoiceOutcome]) -> None:
    """Stores the outputs and their proofs."""
    put = [
        _columns(one.after, case.row) for case in cases for one in case.outcome.changes
    ]
    at_once.run(db, payments.PUT_OUTPUT, put)
    forgotten = [
        _key(output, case.row) for case in cases for output in case.outcome.forgotten
    ]
    at_once.run(db, payments.FORGET_OUTPUT, forgotten)
    proofs: list[Values] = [
        {"invoice_id": case.row.id, "txid": txid, "document": document}
        for case in cases
        for txid, document in case.scan.proofs.items()
    ]
    at_once.run(db, payments.ADD_PROOF, proofs)


def _key(output: Output, row: Invoice) -> Values:
    return {"txid": output.txid, "vout": output.vout, "invoice_id": row.id}


def _columns(output: Output, row: Invoice) -> Values:
    block = output.block
    return _key(output, row) | {
        "merchant_id": row.merchant_id,
        "amount_sats": output.amount_sats,
        "coinbase": int(output.coinbase),
        "first_seen_at": to_ms(output.first_seen_at),
        "seen_waiting": int(output.seen_waiting),
        "inputs": json.dumps(output.inputs) if output.inputs else None,
        "vanished_at": to_ms(output.vanished_at) if output.vanished_at else None,
        "replaced_height": output.replaced_height,
        "block_height": block.height if block else None,
        "block_hash": block.hash if block else None,
        "block_time_at": to_ms(block.mined_at) if block else None,
        "position": output.position,
        "spent_height": output.spent_height,
    }


def _add_payments(
    db: Database, cases: Sequence[InvoiceOutcome], now: datetime
) -> list[Payment]:
    """The rows of the payments that are made, with whole proofs; others settle by now, too."""
    found = [(case, receipt) for case in cases for receipt in case.outcome.payments]
    ids = {case.row.merchant_id for case, _ in found}
    asked: list[Values] = [{"merchant_id": id} for id in ids]
    owners = {row.id: row for row in at_once.rows(db, merchants.COUNTING, asked)}
    new = [
        _payment(*one, owners[one[0].row.merchant_id].currency, now) for one in found
    ]
    made = at_once.rows(db, payments.ADD, new)
    days.add(db, made, {id: row.timezone for id, row in owners.items()})
    _extend_proofs(db, found)
    credited: list[Values] = [
        {
            "txid": row.tx_hash,
            "invoice_id": row.address_invoice_id,
            "payment_id": row.id,
        }
        for row in made
    ]
    at_once.run(db, payments.CREDIT_OUTPUTS, credited)
    settling: list[Values] = [
        {"invoice_id": case.row.id, "tx_hash": txid}
        for case in cases
        for txid in case.outcome.settling
    ]
    at_once.run(db, payments.SETTLE, settling)
    return made


def _payment(
    case: InvoiceOutcome, receipt: Receipt, currency: str, now: datetime
) -> Values:
    """Its columns; worths are to the nearest smallest unit."""
    row = case.row
    amount_sats = receipt.amount_sats
    prices = {} if is_late(receipt.block.mined_at, now) else case.scan.prices
    known = prices.keys() & {"USD", currency}
    worth = {code: f"{value_of(amount_sats, prices[code], code):f}" for code in known}
    return {
        "id": new_id("pay"),
        "merchant_id": row.merchant_id,
        "address_invoice_id": row.id,
        "invoice_id": row.id if receipt.settles else None,
        "amount_sats": amount_sats,
        "amount_usd_at_receipt": worth.get("USD"),
        "currency": currency,
        "value_at_receipt": worth.get(currency),
        "tx_hash": receipt.txid,
        "created_at": to_ms(receipt.received_at),
    }


def _extend_proofs(
    db: Database, found: Sequence[tuple[InvoiceOutcome, Receipt]]
) -> None:
    """Adds the headers of later confirmations to proofs that have the block's alone."""
    missing = {
        (case.row.id, receipt.txid): (
            receipt.block.height,
            case.rules.confirmations - 1,
        )
        for case, receipt in found
        if case.rules.confirmations > 1
    }
    headers = {
        (height, limit): [bytes(row.header) for row in rows]
        for height, limit in set(missing.values())
        for rows in [db.rows(blocks.FOLLOWING, height=height, limit=limit)]
    }
    keys: list[Values] = [{"invoice_id": id, "txid": txid} for id, txid in missing]
    longer: list[Values] = []
    for row in at_once.rows(db, payments.PROOF, keys):
        following = headers[missing[row.invoice_id, row.txid]]
        document = json.dumps(extend_document(json.loads(row.document), following))
        longer.append(
            {"invoice_id": row.invoice_id, "txid": row.txid, "document": document}
        )
    at_once.run(db, payments.EXTEND_PROOF, longer)


def _end(case: InvoiceOutcome) -> End:
    verdict = case.outcome.verdict
    detail = {"reason": verdict.reason, "explorer": case.scan.explorer}
    paid_at = to_ms(verdict.paid_at) if verdict.paid_at else None
    return End(case.row, verdict.status, detail, verdict.tx_hash, paid_at)
