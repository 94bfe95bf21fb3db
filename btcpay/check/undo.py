"""Undoes what was in a block that left the best chain: payments, and what was only proven there."""

import logging
from collections.abc import Sequence
from datetime import datetime

from btcpay.invoices.attention import want
from btcpay.invoices.events import record
from storage.database import Database, Row
from storage.queries import balances, invoices, payments
from storage.queries.events import Kind

log = logging.getLogger(__name__)


def undo(db: Database, height: int, hash: str, explorer: str, now: datetime) -> None:
    """Takes back every payment in this block, and opens again the invoices that they paid.

    An output that was proven there and is no payment yet waits again, in no block. A coin that was
    spent in the block returns to the totals whatever the bound: a refusal would stop every run.
    """
    with db.write():
        # Every merchant's: another runner may be about to settle what came to any of them.
        balances.lock_all(db)
        detail = {"block": {"height": height, "hash": hash}, "explorer": explorer}
        found = {"height": height, "hash": hash}
        outputs = _by_invoice(db.rows(payments.UNCOUNTED_IN_BLOCK, **found), "invoice_id")
        undone = _by_invoice(db.rows(payments.IN_BLOCK, **found), "address_invoice_id")
        for (invoice_id, merchant_id), rows in outputs.items():
            with balances.kept(db, invoice_id, merchant_id, bounded=False):
                for output in rows:
                    _unprove(db, output, detail, now)
        for (invoice_id, merchant_id), rows in undone.items():
            with balances.kept(db, invoice_id, merchant_id, bounded=False):
                for payment in rows:
                    _undo_payment(db, payment, detail, now)


def _by_invoice(rows: Sequence[Row], invoice: str) -> dict[tuple[str, int], list[Row]]:
    """By invoice and merchant, so that a balance is summed once for all rows of an invoice."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row[invoice], row["merchant_id"]), []).append(row)
    return found


def _unprove(db: Database, output: Row, detail: Row, now: datetime) -> None:
    key = {name: output[name] for name in ("invoice_id", "txid", "vout")}
    db.run(payments.UNPROVE_OUTPUT, **key)
    told = {"txid": output["txid"], "vout": output["vout"]}
    db.run(invoices.OUTDATE, id=output["invoice_id"])
    record(db, output["invoice_id"], Kind.REORGANISED, told | detail, now)
    log.warning("reorganised: %s to invoice %s waits again", output["txid"], output["invoice_id"])


def _undo_payment(db: Database, payment: Row, detail: Row, now: datetime) -> None:
    invoice_id, payment_id = payment["address_invoice_id"], payment["id"]
    db.run(payments.UNCREDIT_OUTPUTS, payment_id=payment_id)
    db.run(payments.DELETE_PROOF, payment_id=payment_id)
    db.run(payments.DELETE, payment_id=payment_id)
    reopened = payment["invoice_id"] is not None and db.run(invoices.REOPEN, id=invoice_id)
    if reopened:
        db.run(payments.UNSETTLE, invoice_id=invoice_id)
    db.run(invoices.OUTDATE, id=invoice_id)
    detail = {"id": payment_id, "txid": payment["tx_hash"], "reopened": bool(reopened)} | detail
    record(db, invoice_id, Kind.REORGANISED, detail, now)
    want(db, invoice_id, "reorganised", now)
    log.error(
        "reorganised: payment %s of %s satoshis to invoice %s is undone%s",
        payment_id,
        payment["amount_sats"],
        invoice_id,
        ", the invoice is open again" if reopened else "",
    )
