"""Follows reorganisations: what was in a block that left the best chain is undone, on evidence.

Evidence is another block, proven to be of that height and of real work, on a chain at least as
high as the highest block that was proven to us. An empty answer, a lower chain or an error undo
nothing.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from btcpay.errors import ExplorerError
from btcpay.explorers.compared import compared_of
from btcpay.explorers.comparison import Comparison, Ours
from btcpay.explorers.pool import Explorers
from btcpay.invoices.attention import want
from btcpay.invoices.events import record
from btcpay.networks import Network
from btcpay.times import from_ms, to_ms
from storage.database import Database, Row
from storage.queries import balances, invoices, meta, payments

log = logging.getLogger(__name__)

GIVEN_UP_AFTER = timedelta(days=1)  # that an explorer stands still is noticed within it
FINAL_DEPTH = 6  # a block that was compared at this depth is not compared again


def follow(
    db: Database, explorers: Explorers, network: Network, now: datetime, thrifty: bool = False
) -> int:
    """Compares the blocks of recent payments with the chain's; returns the tip's height.

    What it costs is in `explorers.comparison`. Raises ExplorerError.
    """
    facts = meta.all(db)
    ours = _ours(db, facts)
    given_up: dict[str, str] = {}
    try:
        found = explorers.compare(ours, thrifty)
    except ExplorerError:
        if not gives_up(network, from_ms(int(facts.get("tip_at", 0))), now):
            raise
        ours, given_up = Ours([], 0, ours.known), {"high_height": "0"}
        found = explorers.compare(ours, thrifty)
        log.warning("nobody shows a block as high as one before: it was none of the chain's")
    # An invented height must not make every other explorer look stale.
    explorers.require_height(found.tip_height if found.is_proven else ours.high_height)
    above = db.rows(payments.RECENT_BLOCKS, final_height=found.tip_height) if given_up else []
    for block in [*found.lost, *above]:
        undo(db, block["block_height"], block["block_hash"], found.explorer, now)
    if _facts(facts | given_up, found, now):
        with db.write():
            meta.lock(db)
            for name, value in _facts(meta.all(db) | given_up, found, now).items():
                meta.put(db, name, value)
    return found.tip_height


def gives_up(network: Network, tip_at: datetime, now: datetime) -> bool:
    """Whether a height may be given up that no explorer shows any more, since `tip_at` none new.

    Only where work costs nothing: there one false block makes every honest explorer look behind.
    """
    return network.name != "mainnet" and now - tip_at > GIVEN_UP_AFTER


def _ours(db: Database, facts: dict[str, str]) -> Ours:
    """`final_height` is six blocks below the highest: what was compared there is final."""
    blocks = db.rows(payments.RECENT_BLOCKS, final_height=int(facts.get("final_height", 0)))
    heights = [int(facts.get("high_height", 0)), *(block["block_height"] for block in blocks)]
    return Ours(blocks, max(heights), compared_of(facts.get("compared")))


def _facts(known: dict[str, str], found: Comparison, now: datetime) -> dict[str, str]:
    """What is to be remembered until the next run, as far as it has changed.

    Another run may meanwhile have been shown a higher block: that stays the highest. A height that
    was only said is forgotten.
    """
    facts = {"tip_height": str(found.tip_height)} if found.is_proven else {}
    if found.compared and found.tip_height >= int(known.get("high_height", 0)):
        facts["high_height"] = str(found.tip_height)
        facts["final_height"] = str(found.tip_height - FINAL_DEPTH + 1)
    if found.compared and not found.lost:
        facts["compared"] = found.compared.text()
    changed = {name: value for name, value in facts.items() if known.get(name) != value}
    # Whoever waits for a block is looked at when there is a new one.
    return changed | ({"tip_at": str(to_ms(now))} if changed else {})


def undo(db: Database, height: int, hash: str, explorer: str, now: datetime) -> None:
    """Takes back every payment in this block, and opens the invoices that they paid again.

    What was proven there and is no payment yet waits in no block again. A coin that was spent in
    it comes back to the totals, whatever else was shown: refused, no run would get beyond it.
    """
    with db.write():
        # Of all: another runner may be about to settle what came in this block to any of them.
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
    """By invoice and merchant: what is summed for a balance is summed once for all of them."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row[invoice], row["merchant_id"]), []).append(row)
    return found


def _unprove(db: Database, output: Row, detail: Row, now: datetime) -> None:
    key = {name: output[name] for name in ("invoice_id", "txid", "vout")}
    db.run(payments.UNPROVE_OUTPUT, **key)
    told = {"txid": output["txid"], "vout": output["vout"]}
    db.run(invoices.OUTDATE, id=output["invoice_id"])
    record(db, output["invoice_id"], "reorganised", told | detail, now)
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
    record(db, invoice_id, "reorganised", detail, now)
    want(db, invoice_id, "reorganised", now)
    log.error(
        "reorganised: payment %s of %s satoshis to invoice %s is undone%s",
        payment_id,
        payment["amount_sats"],
        invoice_id,
        ", the invoice is open again" if reopened else "",
    )
