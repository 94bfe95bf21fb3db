"""Follows reorganisations: what was in a block that left the best chain is undone, on evidence.

Evidence is another block, proven to be of that height and of real work, on a chain at least as
high as the highest block that was proven to us. An empty answer, a lower chain or an error undo
nothing.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta

from btcpay.check.undo import undo
from btcpay.errors import ExplorerError
from btcpay.explorers.comparison import Comparison, Ours
from btcpay.explorers.last_compared import compared_of
from btcpay.explorers.pool import Explorers
from btcpay.networks import Network
from btcpay.times import from_ms, to_ms
from storage.database import Database
from storage.queries import meta, payments
from storage.queries.meta import Key

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
    given_up: dict[Key, str] = {}
    try:
        found = explorers.compare(ours, thrifty)
    except ExplorerError:
        if not gives_up(network, from_ms(int(facts.get(Key.TIP_AT, 0))), now):
            raise
        ours, given_up = Ours([], 0, ours.known), {Key.HIGH_HEIGHT: "0"}
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
            for key, value in _facts(meta.all(db) | given_up, found, now).items():
                meta.put(db, key, value)
    return found.tip_height


def gives_up(network: Network, tip_at: datetime, now: datetime) -> bool:
    """Whether to give up a height that no explorer shows any more; the last tip came at `tip_at`.

    Only where work costs nothing: there one false block makes every honest explorer look stale.
    """
    return network.name != "mainnet" and now - tip_at > GIVEN_UP_AFTER


def _ours(db: Database, facts: dict[str, str]) -> Ours:
    """Blocks above `final_height`, six below the highest: what was compared there is final."""
    blocks = db.rows(payments.RECENT_BLOCKS, final_height=int(facts.get(Key.FINAL_HEIGHT, 0)))
    heights = [int(facts.get(Key.HIGH_HEIGHT, 0)), *(block["block_height"] for block in blocks)]
    return Ours(blocks, max(heights), compared_of(facts.get(Key.COMPARED)))


def _facts(known: Mapping[str, str], found: Comparison, now: datetime) -> dict[Key, str]:
    """What has changed and must be remembered until the next run.

    A higher block that another run was shown in the meantime stays the highest. A height that was
    claimed and not proven is forgotten.
    """
    facts = {Key.TIP_HEIGHT: str(found.tip_height)} if found.is_proven else {}
    if found.compared and found.tip_height >= int(known.get(Key.HIGH_HEIGHT, 0)):
        facts[Key.HIGH_HEIGHT] = str(found.tip_height)
        facts[Key.FINAL_HEIGHT] = str(found.tip_height - FINAL_DEPTH + 1)
    if found.compared and not found.lost:
        facts[Key.COMPARED] = found.compared.text()
    changed = {name: value for name, value in facts.items() if known.get(name) != value}
    # Addresses that wait for a block are scanned when there is a new one.
    return changed | ({Key.TIP_AT: str(to_ms(now))} if changed else {})
