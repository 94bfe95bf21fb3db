"""Writes what follows from a look at an address: all of it in one transaction, or nothing."""

from datetime import datetime, timedelta

from btcpay.check.sightings import Look, doubt_unproven, note_proofs, some_vanished, write_outputs
from btcpay.ids import new_id
from btcpay.invoices.attention import heed
from btcpay.invoices.events import finish, record
from btcpay.invoices.status import come_again, invoice_of, known_outputs, rules_for
from btcpay.money import usd_for_sats
from btcpay.settings import Settings
from btcpay.settlement.decide import decide, merge
from btcpay.settlement.values import Output, Receipt, Verdict
from btcpay.times import to_ms
from storage.database import Database, Row
from storage.queries import balances, invoices, payments
from storage.queries.events import Kind

# A receipt found later than this has a price of another hour; none is better than a wrong one.
RECEIPT_PRICE_AGE = timedelta(hours=1)


def apply(db: Database, settings: Settings, row: Row, look: Look, now: datetime) -> Verdict | None:
    """Writes what follows from a look, all of it or nothing.

    None when another run has looked since `row` was read: its facts are newer than ours.
    """
    with db.write():
        balances.lock(db, row["merchant_id"])
        at = to_ms(look.ends_at)
        look_at = {"checked_at": at, "doubted_at": at if look.unproven else None}
        if db.run(invoices.LOOK, id=row["id"], looks=row["looks"], **look_at) != 1:
            return None
        current = db.only(invoices.WHOLE, id=row["id"])
        known = known_outputs(db, row["id"])
        known += come_again(db, row["id"], known, look.outputs)
        outputs = note_proofs(merge(known, look.outputs, look.asked_at), look.proofs)
        verdict = decide(
            invoice_of(current),
            doubt_unproven(outputs, look.proofs),
            look.tip_height,
            None if some_vanished(known, outputs) else look.ends_at,
            rules_for(settings, current),
            now,
        )
        with balances.kept(db, current["id"], current["merchant_id"]):
            write_outputs(db, row, known, outputs, look, now)
            written = _write_payments(db, current, known, verdict, look, now)
        if verdict.status != current["status"]:
            _finish(db, current, verdict, look, now)
        if written or outputs != known or verdict.status != current["status"]:
            heed(db, settings, row["id"], now)
        return verdict


def _write_payments(
    db: Database, row: Row, known: list[Output], verdict: Verdict, look: Look, now: datetime
) -> bool:
    """Whether there was anything to write."""
    written = {output.txid: output.settles for output in known if output.credited}
    due = [
        receipt
        for receipt in verdict.receipts
        if receipt.txid not in written or (receipt.settles and not written[receipt.txid])
    ]
    for receipt in due:
        if receipt.txid not in written:
            _add_payment(db, row, receipt, look, now)
        else:
            db.run(payments.SETTLE, invoice_id=row["id"], tx_hash=receipt.txid)
    return bool(due)


def _add_payment(db: Database, row: Row, receipt: Receipt, look: Look, now: datetime) -> None:
    payment_id = new_id("pay")
    db.run(
        payments.ADD,
        id=payment_id,
        merchant_id=row["merchant_id"],
        address_invoice_id=row["id"],
        invoice_id=row["id"] if receipt.settles else None,
        amount_sats=receipt.amount_sats,
        amount_usd_at_receipt=_usd_text(receipt, look, now),
        tx_hash=receipt.txid,
        created_at=to_ms(receipt.received_at),
    )
    proof = look.proofs[receipt.txid]
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


def _usd_text(receipt: Receipt, look: Look, now: datetime) -> str | None:
    if look.price_usd is None or now - receipt.mined_at > RECEIPT_PRICE_AGE:
        return None
    return str(usd_for_sats(receipt.amount_sats, look.price_usd))


def _finish(db: Database, row: Row, verdict: Verdict, look: Look, now: datetime) -> None:
    finish(
        db,
        row,
        now,
        status=verdict.status,
        tx_hash=verdict.tx_hash,
        paid_at=to_ms(verdict.paid_at) if verdict.paid_at else None,
        reason=verdict.reason,
        explorer=look.explorer,
    )
