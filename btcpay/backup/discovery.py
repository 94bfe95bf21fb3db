"""Address discovery (BIP44): where each counter must stand so that no used address is given again.

A restore does it, since addresses may have been given out after the backup was made.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from btcpay.chain.sources import AddressIndex
from btcpay.merchants.account import derive, parse_account
from btcpay.merchants.gap_limit import gap_of_merchant
from btcpay.values.errors import ExplorerError
from btcpay.values.networks import Network
from storage.database import Database, Row
from storage.queries import blocks, merchants

# Behind so many unused addresses in a row no used one is expected (BIP44: 20). A hundred unpaid
# invoices in a row are more common than one would think: a crawler presses a link's button.
LOOK_AHEAD = 100
SHOWN = 3  # first addresses of each merchant, by which its owner recognises a planted account key
MOST_USED = 100_000  # of one merchant; an explorer that calls every address used must end somewhere


@dataclass(frozen=True)
class Move:
    """A counter that moves from `before` to `next_index`; `addresses`: the account's first ones.

    `used`: indexes from `before` on that the chain knows. `gap_limit`: what the wallet needs now.
    """

    merchant_id: int
    merchant: str
    before: int
    used: tuple[int, ...]
    next_index: int
    gap_limit: int
    addresses: tuple[str, ...]


def used_ahead(explorers: AddressIndex, merchant: Row, network: Network, run: int) -> list[int]:
    """Used indexes from the counter on, up to `run` unused ones in a row. Raises ExplorerError."""
    used: list[int] = []
    index = merchant["next_index"]
    while index < (used[-1] + 1 if used else merchant["next_index"]) + run:
        if explorers.is_used(derive(merchant["xpub"], merchant["script_type"], index, network)):
            used.append(index)
        if len(used) > MOST_USED:
            raise ExplorerError("the explorers call every address used")
        index += 1
    return used


def plan_moves(
    db: Database, explorers: AddressIndex, network: Network, skip: int, given_out: Mapping[str, int]
) -> list[Move]:
    """Where every counter goes: past all addresses that the chain has seen, and `skip` further.

    `given_out`: by account key, where a counter is known to have stood; none goes below it.
    Changes nothing. Raises ExplorerError when the chain could not be asked about an address.
    """
    explorers.require_chain(blocks.tip_height(db) or 0)
    moves = []
    for row in db.rows(merchants.ALL):
        parse_account(row["xpub"], network, row["script_type"])  # refuses what is no account key
        used = used_ahead(explorers, row, network, max(skip, LOOK_AHEAD))
        after = (used[-1] + 1 if used else row["next_index"]) + skip
        after = max(after, given_out.get(row["account_key"], 0))
        first = tuple(derive(row["xpub"], row["script_type"], n, network) for n in range(SHOWN))
        gap, before = gap_of_merchant(db, row, used, after).limit, row["next_index"]
        moves.append(Move(row["id"], row["name"], before, tuple(used), after, gap, first))
    return moves


def apply_moves(db: Database, moves: Iterable[Move]) -> None:
    """Moves the counters; one that is further already stays where it is."""
    with db.write():
        for move in moves:
            db.run(merchants.FORWARD, id=move.merchant_id, next_index=move.next_index)
