"""Follows reorganisations: what was in a block that left the best chain is undone, on evidence.

Evidence is another block, proven to be of that height and of real work, on a chain at least as
high as the highest block that was proven to us. An empty answer, a lower chain or an error undo
nothing.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

from btcpay.ending import record
from btcpay.evidence import block_hash, prove_at
from btcpay.explorer import Explorers, tip_height
from btcpay.history import Get
from btcpay.instants import to_ms
from btcpay.networks import Network
from btcpay.root import Root
from storage import balances, invoices, meta, payments
from storage.database import Database, Row

log = logging.getLogger(__name__)

FINAL_DEPTH = 6  # a block that was compared at this depth is not compared again


@dataclass(frozen=True)
class Comparison:
    """A root's tip, the blocks of ours that are not in its chain, and the root's host.

    `compared` names the tip and the blocks that were held against it; empty when none were.
    """

    tip_height: int
    lost: list[Row]
    explorer: str
    compared: str = ""


def follow(db: Database, explorers: Explorers, network: Network, now: datetime) -> int:
    """Compares the blocks of recent payments with the chain's; returns the tip's height.

    Two calls while the tip is the same; after that one for each distinct block, and five for a
    tip higher than any proven. Raises ExplorerError.

    `high_height` is the highest block that was proven to us, as payments' blocks and tips are:
    a lower chain is no evidence.
    `final_height` is six blocks below it: what was compared there is not compared again.
    """
    known = meta.all(db)
    blocks = db.rows(payments.RECENT_BLOCKS, final_height=int(known.get("final_height", 0)))
    high_height = max(
        [int(known.get("high_height", 0)), *(block["block_height"] for block in blocks)]
    )

    def question(root: Root) -> Comparison:
        tip = tip_height(root)
        if not blocks or tip < high_height:
            return Comparison(tip, [], root.host)
        hash = block_hash(root, tip)
        compared = " ".join([hash, *sorted(block["block_hash"] for block in blocks)])
        if compared == known.get("compared"):
            return Comparison(tip, [], root.host, compared)
        if tip > high_height:
            prove_at(root, hash, tip, network)
        return Comparison(tip, _lost(root, blocks, {tip: hash}, network), root.host, compared)

    found = explorers.ask(question)
    explorers.require(found.tip_height)
    for block in found.lost:
        undo(db, block["block_height"], block["block_hash"], found.explorer, now)
    if _facts(known, found, now):
        with db.write():
            meta.lock(db)
            for name, value in _facts(meta.all(db), found, now).items():
                meta.put(db, name, value)
    return found.tip_height


def _lost(get: Get, blocks: list[Row], known: dict[int, str], network: Network) -> list[Row]:
    """Those of these blocks in whose place the root has another one, proven."""
    heights = {block["block_height"] for block in blocks}
    hashes = {height: known.get(height) or block_hash(get, height) for height in heights}
    lost = [block for block in blocks if hashes[block["block_height"]] != block["block_hash"]]
    for height in {block["block_height"] for block in lost}:
        prove_at(get, hashes[height], height, network)
    return lost


def _facts(known: dict[str, str], found: Comparison, now: datetime) -> dict[str, str]:
    """What is to be remembered until the next run, as far as it has changed.

    Another run may meanwhile have been shown a higher block: that stays the highest.
    """
    facts = {"tip_height": str(found.tip_height)}
    if found.compared and not found.lost:
        facts["compared"] = found.compared
    if found.compared and found.tip_height >= int(known.get("high_height", 0)):
        facts["high_height"] = str(found.tip_height)
        facts["final_height"] = str(found.tip_height - FINAL_DEPTH + 1)
    changed = {name: value for name, value in facts.items() if known.get(name) != value}
    # Whoever waits for a block is looked at when there is a new one.
    return changed | ({"tip_at": str(to_ms(now))} if changed else {})


def undo(db: Database, height: int, hash: str, explorer: str, now: datetime) -> None:
    """Takes back every payment in this block, and opens the invoices that they paid again.

    What was proven there and is no payment yet waits in no block again.
    """
    with db.write():
        balances.lock_block(db, height, hash)
        for output in db.rows(payments.UNCOUNTED_IN_BLOCK, height=height, hash=hash):
            _unprove(db, output, {"block": {"height": height, "hash": hash}}, explorer, now)
        for payment in db.rows(payments.IN_BLOCK, height=height, hash=hash):
            detail = {"block": {"height": height, "hash": hash}, "explorer": explorer}
            _undo_payment(db, payment, detail, now)


def _unprove(db: Database, output: Row, detail: Row, explorer: str, now: datetime) -> None:
    key = {name: output[name] for name in ("invoice_id", "txid", "vout")}
    with balances.kept(db, output["invoice_id"], output["merchant_id"]):
        db.run(payments.UNPROVE_OUTPUT, **key)
    told = {"txid": output["txid"], "vout": output["vout"], "explorer": explorer}
    db.run(invoices.OUTDATE, id=output["invoice_id"])
    record(db, output["invoice_id"], "reorganised", told | detail, now)
    log.warning("reorganised: %s to invoice %s waits again", output["txid"], output["invoice_id"])


def _undo_payment(db: Database, payment: Row, detail: Row, now: datetime) -> None:
    invoice_id, payment_id = payment["address_invoice_id"], payment["id"]
    with balances.kept(db, invoice_id, payment["merchant_id"]):
        db.run(payments.UNCREDIT_OUTPUTS, payment_id=payment_id)
    db.run(payments.DELETE_PROOF, payment_id=payment_id)
    db.run(payments.DELETE, payment_id=payment_id)
    reopened = payment["invoice_id"] is not None and db.run(invoices.REOPEN, id=invoice_id)
    if reopened:
        db.run(payments.UNSETTLE, invoice_id=invoice_id)
    db.run(invoices.OUTDATE, id=invoice_id)
    detail = {"id": payment_id, "txid": payment["tx_hash"], "reopened": bool(reopened)} | detail
    record(db, invoice_id, "reorganised", detail, now)
    log.error(
        "reorganised: payment %s of %s satoshis to invoice %s is undone%s",
        payment_id,
        payment["amount_sats"],
        invoice_id,
        ", the invoice is open again" if reopened else "",
    )
