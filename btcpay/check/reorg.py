"""Follows reorganisations: what was in a block that left the best chain is undone, on evidence.

Evidence is another block, proven to be of that height and of real work, on a chain at least as
high as the highest block that was proven to us. An empty answer, a lower chain or an error undo
nothing.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from btcpay.check.undo import undo
from btcpay.errors import ExplorerError
from btcpay.explorers.endpoint import Root
from btcpay.explorers.evidence import block_hash, header, prove_at
from btcpay.explorers.pool import MAX_BLOCKS_BEHIND, Explorers, tip_height
from btcpay.explorers.quota import TooDear
from btcpay.http_client import FetchError
from btcpay.networks import Network
from btcpay.spv.verify import prove_next
from btcpay.times import from_ms, to_ms
from storage.database import Database, Row
from storage.queries import meta, payments

log = logging.getLogger(__name__)

PROVE_TIP = 5  # calls: its hash, and what proves its height
GIVEN_UP_AFTER = timedelta(days=1)  # that an explorer stands still is noticed within it
FINAL_DEPTH = 6  # a block that was compared at this depth is not compared again


@dataclass(frozen=True)
class Comparison:
    """A root's tip, whether its height was proven, and which of our blocks its chain has not.

    `compared` names the tip, its height and the blocks that were compared with it; empty when none
    were.
    """

    tip_height: int
    explorer: str
    is_proven: bool
    lost: Sequence[Row] = ()
    compared: str = ""


class Known(NamedTuple):
    """The tip that our blocks were compared with last, and which blocks."""

    tip_height: int
    tip_hash: str
    blocks: frozenset[str]


@dataclass(frozen=True)
class Ours:
    """What a chain is compared with: blocks of recent payments, and what is known of their chain.

    `high_height` is the highest block that was proven to us, a payment's or a tip: a lower chain is
    no evidence, and a root that is more than two blocks below it is stuck.
    """

    blocks: list[Row]
    high_height: int
    known: Known

    def are_known_at(self, tip: int) -> bool:
        """Whether all of these blocks were compared with a tip of this height."""
        hashes = {block["block_hash"] for block in self.blocks}
        return tip == self.known.tip_height and hashes <= self.known.blocks


def follow(
    db: Database, explorers: Explorers, network: Network, now: datetime, thrifty: bool = False
) -> int:
    """Compares the blocks of recent payments with the chain's; returns the tip's height.

    Two calls while the tip is the same, one when `thrifty`: then another tip of the same height is
    only noticed with the block after it. One also when there is nothing to compare. Three for a
    block on top of the tip that was compared. Otherwise five to prove a tip that is higher than any
    before, and one for each distinct block. Raises ExplorerError.
    """
    facts = meta.all(db)
    ours, given_up = _ours(db, facts), dict[str, str]()
    try:
        found = _ask(explorers, ours, network, thrifty)
    except ExplorerError:
        if not gives_up(network, from_ms(int(facts.get("tip_at", 0))), now):
            raise
        ours, given_up = Ours([], 0, ours.known), {"high_height": "0"}
        found = _ask(explorers, ours, network, thrifty)
        log.warning("nobody shows a block as high as one before: it was none of the chain's")
    # An invented height must not make every other root look stale.
    explorers.require(found.tip_height if found.is_proven else ours.high_height)
    above = db.rows(payments.RECENT_BLOCKS, final_height=found.tip_height) if given_up else []
    for block in [*found.lost, *above]:
        undo(db, block["block_height"], block["block_hash"], found.explorer, now)
    if _facts(facts | given_up, found, now):
        with db.write():
            meta.lock(db)
            for name, value in _facts(meta.all(db) | given_up, found, now).items():
                meta.put(db, name, value)
    return found.tip_height


def _ask(explorers: Explorers, ours: Ours, network: Network, thrifty: bool) -> Comparison:
    """What the first root says whose chain is as high as ours. Raises ExplorerError."""
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
        except TooDear:  # another run will; what is due is scanned all the same
            return unproven

    return explorers.ask(question)


def gives_up(network: Network, tip_at: datetime, now: datetime) -> bool:
    """Whether to give up a height that no explorer shows any more; the last tip came at `tip_at`.

    Only where work costs nothing: there one false block makes every honest explorer look stale.
    """
    return network.name != "mainnet" and now - tip_at > GIVEN_UP_AFTER


def _ours(db: Database, facts: dict[str, str]) -> Ours:
    """Blocks above `final_height`, six below the highest: what was compared there is final."""
    blocks = db.rows(payments.RECENT_BLOCKS, final_height=int(facts.get("final_height", 0)))
    heights = [int(facts.get("high_height", 0)), *(block["block_height"] for block in blocks)]
    height, hash, *compared = (facts.get("compared") or "-1 ").split(" ")
    return Ours(blocks, max(heights), Known(int(height), hash, frozenset(compared)))


def _compare(root: Root, tip: int, ours: Ours, network: Network) -> Comparison:
    """Compares our blocks with this root's chain, once its tip is proven to be of that height.

    What was in the chain of a tip is also in the chain of a block on top of that tip.
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
    compared = " ".join([str(tip), hash, *sorted({block["block_hash"] for block in blocks})])
    return Comparison(tip, root.host, is_proven=True, lost=lost, compared=compared)


def _is_next(root: Root, tip: int, hash: str, known: Known, network: Network) -> bool:
    if tip != known.tip_height + 1:
        return False
    return prove_next(header(root.keep, hash), hash, known.tip_hash, network.max_target_bits)


def _facts(known: dict[str, str], found: Comparison, now: datetime) -> dict[str, str]:
    """What has changed and must be remembered until the next run.

    A higher block that another run was shown in the meantime stays the highest. A height that was
    claimed and not proven is forgotten.
    """
    facts = {"tip_height": str(found.tip_height)} if found.is_proven else {}
    if found.compared and found.tip_height >= int(known.get("high_height", 0)):
        facts["high_height"] = str(found.tip_height)
        facts["final_height"] = str(found.tip_height - FINAL_DEPTH + 1)
    if found.compared and not found.lost:
        facts["compared"] = found.compared
    changed = {name: value for name, value in facts.items() if known.get(name) != value}
    # Addresses that wait for a block are scanned when there is a new one.
    return changed | ({"tip_at": str(to_ms(now))} if changed else {})
