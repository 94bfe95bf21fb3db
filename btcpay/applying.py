"""Writes what follows from a look at an address: all of it in one transaction, or nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from btcpay.errors import StaleError
from btcpay.facts import Output, Receipt, Verdict
from btcpay.history import SeenOutput
from btcpay.identifiers import new_id
from btcpay.instants import to_ms
from btcpay.money import usd_for_sats
from btcpay.proof import Proven
from btcpay.settings import Settings
from btcpay.settlement import decide, merge
from btcpay.standing import invoice_of, known_outputs, rules_for
from storage import balances, events, invoices, merchants, payments
from storage.database import Database, Row

# A receipt found later than this has a price of another hour; none is better than a wrong one.
RECEIPT_PRICE_AGE = timedelta(hours=1)


@dataclass(frozen=True)
class Proof:
    """What was proven of a transaction, the document that proves it again, and who showed it."""

    proven: Proven
    document: str
    explorer: str | None = None


@dataclass(frozen=True)
class Look:
    """A complete answer about one address, and when the question was put.

    `proofs` by txid: a confirmed output without one is doubted, and never becomes a payment.
    `unproven`: a proof was wanted and could not be had. `explorer`: the host that was asked.
    """

    asked_at: datetime
    tip_height: int
    outputs: list[SeenOutput]
    price_usd: Decimal | None
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    unproven: bool = False
    explorer: str | None = None


def apply(db: Database, settings: Settings, row: Row, look: Look, now: datetime) -> Verdict | None:
    """Writes what follows from a look, all of it or nothing.

    None when another run has looked since `row` was read: its facts are newer than ours.
    """
    with db.write():
        at = to_ms(look.asked_at)
        look_at = {"checked_at": at, "doubted_at": at if look.unproven else None}
        if db.run(invoices.LOOK, id=row["id"], looks=row["looks"], **look_at) != 1:
            return None
        current = db.only(invoices.WHOLE, id=row["id"])
        known = known_outputs(db, row["id"])
        outputs = note_proofs(merge(known, look.outputs, look.asked_at), look.proofs)
        verdict = decide(
            invoice_of(current),
            doubt_unproven(outputs, look.proofs),
            look.tip_height,
            None if _some_vanished(known, outputs) else look.asked_at,
            rules_for(settings, current),
            now,
        )
        with balances.kept(db, current["id"], current["merchant_id"]):
            _write_outputs(db, row, known, outputs, look, now)
            _write_payments(db, current, known, verdict, look, now)
        if verdict.status != current["status"]:
            _finish(db, current, verdict, look, now)
        return verdict


def _write_payments(
    db: Database, row: Row, known: list[Output], verdict: Verdict, look: Look, now: datetime
) -> None:
    written = {output.txid: output.settles for output in known if output.credited}
    for receipt in verdict.receipts:
        if receipt.txid not in written:
            _add_payment(db, row, receipt, look, now)
        elif receipt.settles and not written[receipt.txid]:
            db.run(payments.SETTLE, invoice_id=row["id"], tx_hash=receipt.txid)


def note_proofs(outputs: list[Output], proofs: Mapping[str, Proof]) -> list[Output]:
    """The outputs, with those marked that this look has proven."""
    return [
        replace(output, proven=True) if _is_proven(output, outputs, proofs) else output
        for output in outputs
    ]


def doubt_unproven(outputs: list[Output], proofs: Mapping[str, Proof]) -> list[Output]:
    """The outputs, with those doubted whose block, time or amount no proof bears out."""
    return [
        output
        if output.credited or not output.block or _is_proven(output, outputs, proofs)
        else replace(output, doubted=True)
        for output in outputs
    ]


def _is_proven(output: Output, outputs: list[Output], proofs: Mapping[str, Proof]) -> bool:
    proof = proofs.get(output.txid)
    return proof is not None and bears_out(proof.proven, output, outputs)


def bears_out(proven: Proven, output: Output, outputs: Sequence[Output]) -> bool:
    """Whether block and time hold, and the transaction pays us exactly the outputs that we know."""
    known = {o.vout: o.amount_sats for o in outputs if o.txid == output.txid and not o.vanished}
    paid = {vout: sats for vout, sats in proven.amounts_sats.items() if sats}
    return output.block is not None and (
        known == paid
        and proven.height == output.block.height
        and proven.block_hash == output.block.hash
        and proven.mined_at == output.block.mined_at
    )


def _some_vanished(known: list[Output], outputs: list[Output]) -> bool:
    """Whether this look misses money that waited: then it does not expire the invoice as well.

    An explorer may be behind, or change its list between two pages; the next look decides.
    """
    waiting = {(output.txid, output.vout) for output in known if not output.vanished}
    return any(output.vanished and (output.txid, output.vout) in waiting for output in outputs)


def _write_outputs(
    db: Database, row: Row, known: list[Output], outputs: list[Output], look: Look, now: datetime
) -> None:
    before = {(output.txid, output.vout): output for output in known}
    for output in outputs:
        old = before.get((output.txid, output.vout))
        if output == old or output.doubted:
            continue
        block = output.block
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
        }
        if old:
            db.run(payments.UPDATE_OUTPUT, **values)
        else:
            db.run(payments.ADD_OUTPUT, **values, merchant_id=row["merchant_id"])
        if output.spent_height and (old is None or old.spent_height is None):
            swept_at = {"at": to_ms(look.asked_at), "checked_at": row["checked_at"] or 0}
            db.run(merchants.SWEPT, id=row["merchant_id"], **swept_at)
        _note_output(db, row["id"], old, output, look, now)


def _note_output(
    db: Database, invoice_id: str, old: Output | None, output: Output, look: Look, now: datetime
) -> None:
    block = output.block and {"height": output.block.height, "hash": output.block.hash}
    detail = {
        "txid": output.txid,
        "vout": output.vout,
        "amount_sats": output.amount_sats,
        "explorer": look.explorer,
    }
    if old is None:
        record(db, invoice_id, "seen", detail | {"block": block}, now)
    elif output.vanished:
        record(db, invoice_id, "vanished", detail, now)
    elif old.vanished:
        record(db, invoice_id, "seen again", detail | {"block": block}, now)
    elif old.block != output.block:
        record(db, invoice_id, "moved", detail | {"block": block}, now)
    elif old.spent_height != output.spent_height:
        record(db, invoice_id, "spent", detail | {"height": output.spent_height}, now)


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
    record(db, row["id"], "payment", detail, now)


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


def finish(
    db: Database,
    row: Row,
    now: datetime,
    status: str,
    reason: str,
    tx_hash: str | None = None,
    paid_at: int | None = None,
    settled_reason: str | None = None,
    explorer: str | None = None,
) -> None:
    """Ends an invoice that still has the status of `row`, and records why.

    Raises StaleError, which undoes the transaction, when the status has changed since.
    """
    changed = db.run(
        invoices.FINISH,
        id=row["id"],
        from_status=row["status"],
        status=status,
        tx_hash=tx_hash,
        paid_at=paid_at,
        settled_reason=settled_reason,
        finished_at=to_ms(now),
    )
    if changed != 1:
        raise StaleError(f"invoice {row['id']} is not {row['status']} any more; try again")
    detail = {"reason": reason} | ({"explorer": explorer} if explorer else {})
    record(db, row["id"], status, detail, now)


def record(db: Database, invoice_id: str, kind: str, detail: dict, now: datetime) -> None:
    """Adds to the invoice's history."""
    db.run(
        events.ADD,
        invoice_id=invoice_id,
        happened_at=to_ms(now),
        kind=kind,
        detail=json.dumps(detail),
    )
