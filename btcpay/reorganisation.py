"""Follows reorganisations: a payment whose block left the best chain is undone, on evidence only.

Evidence is another block, proven to be of that height and of real work, on a chain at least as
high as the highest block that was proven to us. An empty answer, a lower chain or an error undo
nothing.
"""

import logging
from datetime import datetime

from btcpay.applying import record
from btcpay.evidence import block_hash, prove_at, survey
from btcpay.explorer import Explorers, Get
from btcpay.networks import Network
from storage import balances, invoices, meta, payments
from storage.database import Database, Row

log = logging.getLogger(__name__)

FINAL_DEPTH = 6  # a block that was compared at this depth is not compared again
_HEIGHTS = ("high_height", "final_height")


def follow(db: Database, explorers: Explorers, network: Network, now: datetime) -> int:
    """Compares the blocks of recent payments with the chain's; returns the tip's height.

    One call for the tip and one for each distinct block, five for a tip higher than any proven.
    Raises ExplorerError.

    `high_height` is the highest block that was proven to us, as payments' blocks and tips are:
    a lower chain is no evidence.
    `final_height` is six blocks below it: what was compared there is not compared again.
    """
    high_height, final_height = (int(meta.get(db, name) or 0) for name in _HEIGHTS)
    blocks = db.rows(payments.RECENT_BLOCKS, final_height=final_height)
    high_height = max([high_height, *(block["block_height"] for block in blocks)])

    def question(get: Get) -> tuple[int, list[Row]]:
        found = survey(get, sorted({block["block_height"] for block in blocks}))
        tip_height = found.tip_height
        if not blocks or tip_height < high_height:
            return tip_height, []
        if tip_height > high_height:
            prove_at(get, block_hash(get, tip_height), tip_height, network)
        lost = [b for b in blocks if found.hashes[b["block_height"]] != b["block_hash"]]
        for height in {block["block_height"] for block in lost}:
            prove_at(get, found.hashes[height], height, network)
        return tip_height, lost

    tip_height, lost = explorers.ask(question)
    explorers.require(tip_height)
    for block in lost:
        undo(db, block["block_height"], block["block_hash"], now)
    if blocks and tip_height > high_height:
        meta.put(db, "high_height", str(tip_height))
        meta.put(db, "final_height", str(tip_height - FINAL_DEPTH + 1))
    meta.put(db, "tip_height", str(tip_height))
    return tip_height


def undo(db: Database, height: int, hash: str, now: datetime) -> None:
    """Takes back every payment in this block, and opens the invoices that they paid again."""
    with db.write():
        for payment in db.rows(payments.IN_BLOCK, height=height, hash=hash):
            _undo_payment(db, payment, {"height": height, "hash": hash}, now)


def _undo_payment(db: Database, payment: Row, block: Row, now: datetime) -> None:
    invoice_id, payment_id = payment["address_invoice_id"], payment["id"]
    with balances.kept(db, invoice_id, payment["merchant_id"]):
        db.run(payments.UNCREDIT_OUTPUTS, payment_id=payment_id)
    db.run(payments.DELETE_PROOF, payment_id=payment_id)
    db.run(payments.DELETE, payment_id=payment_id)
    reopened = payment["invoice_id"] is not None and db.run(invoices.REOPEN, id=invoice_id)
    if reopened:
        db.run(payments.UNSETTLE, invoice_id=invoice_id)
    detail = {"id": payment_id, "txid": payment["tx_hash"], "block": block}
    record(db, invoice_id, "reorganised", detail | {"reopened": bool(reopened)}, now)
    log.error(
        "reorganised: payment %s of %s satoshis to invoice %s is undone%s",
        payment_id,
        payment["amount_sats"],
        invoice_id,
        ", the invoice is open again" if reopened else "",
    )
