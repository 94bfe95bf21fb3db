"""Follows reorganisations: what was in a block that left the best chain is undone, on evidence.

Evidence is another block, proven to be of that height and of real work, on a chain at least as
high as the highest block that was proven to us. An empty answer, a lower chain or an error undo
nothing.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.errors import ExplorerError
from btcpay.explorers.compared import Compared, compared_of
from btcpay.explorers.endpoint import Root
from btcpay.explorers.evidence import block_hash, header, prove_at
from btcpay.explorers.pool import MAX_BLOCKS_BEHIND, Explorers, tip_height
from btcpay.explorers.quota import TooDear
from btcpay.http_client import FetchError
from btcpay.invoices.attention import want
from btcpay.invoices.events import record
from btcpay.networks import Network
from btcpay.spv.verify import prove_next
from btcpay.times import from_ms, to_ms
from storage.database import Database, Row
from storage.queries import balances, invoices, meta, payments
from storage.queries.events import Kind
from storage.queries.meta import Key

log = logging.getLogger(__name__)

PROVE_TIP = 5  # calls: its hash, and what proves its height
GIVEN_UP_AFTER = timedelta(days=1)  # that an explorer stands still is noticed within it
FINAL_DEPTH = 6  # a block that was compared at this depth is not compared again


@dataclass(frozen=True)
class Comparison:
    """A root's tip, whether its height was proven, the blocks of ours that are not in its chain.

    `compared` are all that were held against it; None when none were.
    """

    tip_height: int
    explorer: str
    is_proven: bool
    lost: Sequence[Row] = ()
    compared: Compared | None = None


@dataclass(frozen=True)
class Ours:
    """What a chain is held against: blocks of recent payments, and what is known of their chain.

    `high_height` is the highest block that was proven to us, as payments' blocks and tips are:
    a lower chain is no evidence, and a root that is more than two below it is stuck.
    """

    blocks: list[Row]
    high_height: int
    known: Compared

    def are_known_at(self, tip: int) -> bool:
        """Whether all of them were compared with a tip of this height."""
        hashes = {block["block_hash"] for block in self.blocks}
        return tip == self.known.tip_height and hashes <= self.known.blocks


def follow(
    db: Database, explorers: Explorers, network: Network, now: datetime, thrifty: bool = False
) -> int:
    """Compares the blocks of recent payments with the chain's; returns the tip's height.

    Two calls while the tip is the same, one when `thrifty`: then another tip of the same height is
    only noticed with the block after it; one as well when there is nothing to compare. Three for a
    block on top of the tip that was compared. Else five to prove a tip that is higher than any
    before, and one for each distinct block. Raises ExplorerError.
    """
    facts = meta.all(db)
    ours = _ours(db, facts)
    compares = bool(ours.blocks) or explorers.several

    def question(root: Root) -> Comparison:
        tip = tip_height(root)
        if tip < ours.high_height - MAX_BLOCKS_BEHIND:
            raise FetchError(f"is {ours.high_height - tip} blocks behind what was proven to us")
        unproven = Comparison(tip, root.host, is_proven=tip <= ours.high_height)
        is_enough = not compares or (thrifty and ours.are_known_at(tip))
        if tip < ours.high_height or (tip == ours.high_height and is_enough):
            return unproven
        try:
            with root.claim(PROVE_TIP + len(ours.blocks)):
                return _compare(root, tip, ours, network)
        except TooDear:  # another run will; what is to be looked at is looked at all the same
            return unproven

    given_up: dict[Key, str] = {}
    try:
        found = explorers.ask(question)
    except ExplorerError:
        if not gives_up(network, from_ms(int(facts.get(Key.TIP_AT, 0))), now):
            raise
        ours, given_up = Ours([], 0, ours.known), {Key.HIGH_HEIGHT: "0"}
        found = explorers.ask(question)
        log.warning("nobody shows a block as high as one before: it was none of the chain's")
    # An invented height must not make every other root look stale.
    explorers.require(found.tip_height if found.is_proven else ours.high_height)
    above = db.rows(payments.RECENT_BLOCKS, final_height=found.tip_height) if given_up else []
    for block in [*found.lost, *above]:
        undo(db, block["block_height"], block["block_hash"], found.explorer, now)
    if _facts(facts | given_up, found, now):
        with db.write():
            meta.lock(db)
            for key, value in _facts(meta.all(db) | given_up, found, now).items():
                meta.put(db, key, value)
    return found.tip_height


def gives_up(network: Network, tip_at: datetime, now: datetime) -> bool:
    """Whether a height may be given up that no explorer shows any more, since `tip_at` none new.

    Only where work costs nothing: there one false block makes every honest explorer look behind.
    """
    return network.name != "mainnet" and now - tip_at > GIVEN_UP_AFTER


def _ours(db: Database, facts: dict[str, str]) -> Ours:
    """`final_height` is six blocks below the highest: what was compared there is final."""
    blocks = db.rows(payments.RECENT_BLOCKS, final_height=int(facts.get(Key.FINAL_HEIGHT, 0)))
    heights = [int(facts.get(Key.HIGH_HEIGHT, 0)), *(block["block_height"] for block in blocks)]
    return Ours(blocks, max(heights), compared_of(facts.get(Key.COMPARED)))


def _compare(root: Root, tip: int, ours: Ours, network: Network) -> Comparison:
    """Holds our blocks against this root's chain, once its tip is proven to be of that height.

    What was in the chain of a tip is in the chain of the block on top of it.
    """
    blocks, known, hash = ours.blocks, ours.known, block_hash(root, tip)
    is_same = (tip, hash) == (known.tip_height, known.tip_hash)
    if is_same or _is_next(root, tip, hash, known, network):
        unseen = [block for block in blocks if block["block_hash"] not in known.blocks]
    else:
        unseen = blocks
        if tip > ours.high_height:
            prove_at(root, hash, tip, network)
    hashes = {tip: hash}
    for height in {block["block_height"] for block in unseen} - {tip}:
        hashes[height] = block_hash(root, height)
    lost = [block for block in unseen if hashes[block["block_height"]] != block["block_hash"]]
    for height in {block["block_height"] for block in lost}:
        prove_at(root, hashes[height], height, network)
    compared = Compared(tip, hash, frozenset(block["block_hash"] for block in blocks))
    return Comparison(tip, root.host, is_proven=True, lost=lost, compared=compared)


def _is_next(root: Root, tip: int, hash: str, known: Compared, network: Network) -> bool:
    if tip != known.tip_height + 1:
        return False
    return prove_next(header(root.keep, hash), hash, known.tip_hash, network.max_target_bits)


def _facts(known: Mapping[str, str], found: Comparison, now: datetime) -> dict[Key, str]:
    """What is to be remembered until the next run, as far as it has changed.

    Another run may meanwhile have been shown a higher block: that stays the highest. A height that
    was only said is forgotten.
    """
    facts = {Key.TIP_HEIGHT: str(found.tip_height)} if found.is_proven else {}
    if found.compared and found.tip_height >= int(known.get(Key.HIGH_HEIGHT, 0)):
        facts[Key.HIGH_HEIGHT] = str(found.tip_height)
        facts[Key.FINAL_HEIGHT] = str(found.tip_height - FINAL_DEPTH + 1)
    if found.compared and not found.lost:
        facts[Key.COMPARED] = found.compared.text()
    changed = {key: value for key, value in facts.items() if known.get(key) != value}
    # Whoever waits for a block is looked at when there is a new one.
    return changed | ({Key.TIP_AT: str(to_ms(now))} if changed else {})


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
