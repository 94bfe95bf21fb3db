"""Writes what follows from a scan of an address: all of it in one transaction, or nothing."""

from datetime import datetime, timedelta
from typing import Any

from btcpay.ids import new_id
from btcpay.invoices.attention import heed
from btcpay.invoices.events import finish, record
from btcpay.invoices.status import come_again, invoice_of, known_outputs, rules_for
from btcpay.money import usd_for_sats
from btcpay.settings import Settings
from btcpay.settlement.settle import Change, settle
from btcpay.settlement.values import Receipt, Scan, Verdict
from btcpay.times import to_ms
from storage.database import Database, Row
from storage.queries import balances, invoices, merchants, payments
from storage.queries.events import Kind

# Found later than this, a receipt would get the price of another hour; none is better than that.
RECEIPT_PRICE_AGE = timedelta(hours=1)


def apply(db: Database, settings: Settings, row: Row, scan: Scan, now: datetime) -> Verdict | None:
    """Writes what follows from a scan, all of it or nothing.

    None when another run has scanned the address since `row` was read: its facts are newer.
    """
    with db.write():
        balances.lock(db, row["merchant_id"])
        at = to_ms(scan.ends_at)
        scanned = {"checked_at": at, "doubted_at": at if scan.unproven else None}
        if db.run(invoices.LOOK, id=row["id"], looks=row["looks"], **scanned) != 1:
            return None
        current = db.only(invoices.WHOLE, id=row["id"])
        known = known_outputs(db, row["id"])
        known += come_again(db, row["id"], known, scan.outputs)
        outcome = settle(invoice_of(current), known, scan, rules_for(settings, current), now)
        with balances.kept(db, current["id"], current["merchant_id"]):
            for change in outcome.changes:
                _write_output(db, row, change, scan, now)
            for receipt in outcome.payments:
                _add_payment(db, current, receipt, scan, now)
            for txid in outcome.settling:
                db.run(payments.SETTLE, invoice_id=row["id"], tx_hash=txid)
        has_ended = outcome.verdict.status != current["status"]
        if has_ended:
            _finish(db, current, outcome.verdict, scan, now)
        if has_ended or outcome.changes or outcome.payments or outcome.settling:
            heed(db, settings, row["id"], now)
        return outcome.verdict


def _write_output(db: Database, row: Row, change: Change, scan: Scan, now: datetime) -> None:
    output, block = change.after, change.after.block
    values = {
        "txid": output.txid,
        "vout": output.vout,
        "invoice_id": row["id"],
        "first_seen_at": to_ms(output.first_seen_at),
        "amount_sats": output.amount_sats,
        "coinbase": int(output.coinbase),
        "vanished_at": to_ms(now) if output.vanished else None,
        "block_height": block.height if block else None,
        "block_hash": block.hash if block else None,
        "block_time_at": to_ms(block.mined_at) if block else None,
        "spent_height": output.spent_height,
        "proven": int(output.proven),
        "position": output.position,
        "seen_waiting": int(output.seen_waiting),
    }
    if change.before:
        db.run(payments.UPDATE_OUTPUT, **values)
    else:
        db.run(payments.ADD_OUTPUT, **values, merchant_id=row["merchant_id"])
    _write_spend(db, row, change, scan)
    _record_output(db, row["id"], change, scan, now)


def _write_spend(db: Database, row: Row, change: Change, scan: Scan) -> None:
    """Has the merchant's other coins asked for when one has moved, or has not after all."""
    if change.has_moved is None:
        return
    at = {"at": to_ms(scan.ends_at), "checked_at": row["checked_at"] or 0}
    query = merchants.COIN_MOVED if change.has_moved else merchants.UNSPENT
    db.run(query, id=row["merchant_id"], **at)
    if change.has_moved:
        key = {"invoice_id": row["id"], "txid": change.after.txid, "vout": change.after.vout}
        db.run(payments.SPENT, **key, at=at["at"])


def _record_output(
    db: Database, invoice_id: str, change: Change, scan: Scan, now: datetime
) -> None:
    if change.kind is None:
        return
    output, kind = change.after, Kind(change.kind)
    detail: dict[str, Any] = {
        "txid": output.txid,
        "vout": output.vout,
        "amount_sats": output.amount_sats,
        "explorer": scan.explorer,
    }
    if kind in (Kind.SEEN, Kind.SEEN_AGAIN, Kind.MOVED):
        block = output.block
        detail["block"] = block and {"height": block.height, "hash": block.hash}
    elif kind == Kind.SPENT:
        detail["height"] = output.spent_height
    record(db, invoice_id, kind, detail, now)


def _add_payment(db: Database, row: Row, receipt: Receipt, scan: Scan, now: datetime) -> None:
    payment_id = new_id("pay")
    db.run(
        payments.ADD,
        id=payment_id,
        merchant_id=row["merchant_id"],
        address_invoice_id=row["id"],
        invoice_id=row["id"] if receipt.settles else None,
        amount_sats=receipt.amount_sats,
        amount_usd_at_receipt=_usd_text(receipt, scan, now),
        tx_hash=receipt.txid,
        created_at=to_ms(receipt.received_at),
    )
    proof = scan.proofs[receipt.txid]
    db.run(payments.ADD_PROOF, payment_id=payment_id, document=proof.document)
    credited = {"payment_id": payment_id, "txid": receipt.txid, "invoice_id": row["id"]}
    db.run(payments.CREDIT_OUTPUTS, **credited)
    block = {"height": proof.proven.height, "hash": proof.proven.block_hash}
    detail = {
        "id": payment_id,
        "txid": receipt.txid,
        "amount_sats": receipt.amount_sats,
        "block": block,
        "explorer": proof.explorer,
    }
    record(db, row["id"], Kind.PAYMENT, detail, now)


def _usd_text(receipt: Receipt, scan: Scan, now: datetime) -> str | None:
    if scan.price_usd is None or now - receipt.mined_at > RECEIPT_PRICE_AGE:
        return None
    return str(usd_for_sats(receipt.amount_sats, scan.price_usd))


def _finish(db: Database, row: Row, verdict: Verdict, scan: Scan, now: datetime) -> None:
    finish(
        db,
        row,
        now,
        status=verdict.status,
        tx_hash=verdict.tx_hash,
        paid_at=to_ms(verdict.paid_at) if verdict.paid_at else None,
        reason=verdict.reason,
        explorer=scan.explorer,
    )
