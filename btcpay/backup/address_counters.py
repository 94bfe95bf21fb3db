"""Moves the address counters after a restore: planned by the chain, if the owner agrees.

Addresses may have been given out after the backup was made, and none of those that were used may be
given out again. So used addresses are searched for (BIP44, "address discovery").
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from btcpay.bitcoin.address import address_of
from btcpay.bitcoin.keys import InvalidChild
from btcpay.chain.explorers.pool import open_explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.rescan import scripts_paid_since
from btcpay.merchants.account import derive, parse_account, stored_account
from btcpay.merchants.merchants import gap_of_merchant
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError, ExplorerError
from btcpay.values.networks import Network
from storage.database import Database
from storage.models import Merchant
from storage.queries import blocks, merchants, sessions
from storage.statement import changed

# After so many unused addresses in a row no used one is expected (BIP44: 20). A hundred unpaid
# invoices in a row happen if a crawler presses a link's button.
LOOK_AHEAD = 100
# First addresses of each merchant, by which its owner recognises a planted account key.
SHOWN = 3
# Used addresses of one merchant; an explorer that calls every address used must end somewhere.
MOST_USED = 100_000
# Blocks are searched for so many times as many addresses of each merchant.
MATCHED = 20
OF_PEERS = ". Name nodes that run in BLOCKTILL_PEERS, or an explorer for this command"


@dataclass(frozen=True)
class Move:
    """A counter that moves from `before` to `next_index`; `addresses`: the account's first ones.

    `used`: the indexes from `before` on that the chain knows. `gap_limit`: the limit that the
    wallet needs now.
    """

    merchant_id: int
    merchant: str
    before: int
    used: tuple[int, ...]
    next_index: int
    gap_limit: int
    addresses: tuple[str, ...]


# Shows the owner the moves, the merchants that would be lost and the programs that the next check
# runs. Raises if the owner declines.
Agree = Callable[[list[Move], list[str], list[str]], None]
Clock = Callable[[], datetime]


def plan(
    db: Database,
    settings: Settings,
    skip: int,
    clock: Clock,
    counters: Mapping[str, int],
    is_copy: bool = True,
) -> list[Move]:
    """The new place of every counter: `skip` past the last address that the chain has seen.

    `counters` are those of another database, by account key: none falls behind them. Moves
    nothing. Raises CommandError, also if the chain could not be asked about an address.
    """
    # Counts calls but refuses none: a restore that stops for an hour keeps a shop closed.
    explorers = open_explorers(settings, Quota(db, sys.maxsize, clock))
    moves = []
    run = max(skip, LOOK_AHEAD)
    try:
        if settings.explorers:
            explorers.require_chain(blocks.tip_height(db) or 0)
            is_used: Callable[[str], bool] = explorers.is_used
        else:
            is_used = _is_in_blocks(db, settings, run * MATCHED, clock, is_copy)
        for row in db.rows(merchants.ALL):
            used = _used_ahead(is_used, row, settings.network, run)
            after = _first_unused(row, used) + skip
            after = max(after, counters.get(row.account_key, 0))
            moves.append(_move(db, row, settings.network, used, after))
    except InvalidChild as error:
        raise CommandError(f"nothing was changed: {error}") from None
    except ExplorerError as error:
        message = f"nothing was changed, the chain must be asked first: {error}"
        if not settings.explorers:
            message += OF_PEERS
        raise CommandError(message) from None
    finally:
        explorers.close()
    return moves


def _is_in_blocks(
    db: Database, settings: Settings, most: int, clock: Clock, is_copy: bool
) -> Callable[[str], bool]:
    """Tells whether blocks since the backup pay an address, one of each merchant's next `most`."""
    watched: dict[str, bytes] = {}
    for row in db.rows(merchants.ALL):
        account = stored_account(row.descriptor)
        for index in range(row.next_index, row.next_index + most):
            script = account.script(index)
            watched[address_of(script, settings.network)] = script
    paid: Set[bytes] = set()
    if watched:
        scripts = set(watched.values())
        paid = scripts_paid_since(db, settings, clock, scripts, is_copy)

    def is_used(address: str) -> bool:
        if address not in watched:
            raise ExplorerError(
                f"{most} addresses are too few to search for: raise --skip"
            )
        return watched[address] in paid

    return is_used


def _used_ahead(
    is_used: Callable[[str], bool], merchant: Merchant, network: Network, run: int
) -> list[int]:
    """Used indexes from the counter on, up to `run` unused ones in a row. Raises ExplorerError."""
    used: list[int] = []
    index = merchant.next_index
    while index < _first_unused(merchant, used) + run:
        if is_used(derive(merchant.descriptor, index, network)):
            used.append(index)
        if len(used) > MOST_USED:
            raise ExplorerError("the explorers say that every address is used")
        index += 1
    return used


def _first_unused(merchant: Merchant, used: Sequence[int]) -> int:
    """The index after the last used one, or the counter's."""
    if used:
        return used[-1] + 1
    return merchant.next_index


def _move(
    db: Database, row: Merchant, network: Network, used: list[int], after: int
) -> Move:
    parse_account(row.descriptor, network)  # refuses what is no account of this network
    first = tuple(derive(row.descriptor, index, network) for index in range(SHOWN))
    gap = gap_of_merchant(db, changed(row, next_index=after), used)
    return Move(
        merchant_id=row.id,
        merchant=row.name,
        before=row.next_index,
        used=tuple(used),
        next_index=after,
        gap_limit=gap.limit,
        addresses=first,
    )


def apply_moves(db: Database, moves: Iterable[Move]) -> None:
    """Moves the counters; one that is already further stays where it is.

    Merchants' browsers are logged out: a session that was ended must not come back.
    """
    with db.write():
        for move in moves:
            db.run(merchants.FORWARD, id=move.merchant_id, next_index=move.next_index)
        for query in sessions.END_EVERYTHING:
            db.run(query)
