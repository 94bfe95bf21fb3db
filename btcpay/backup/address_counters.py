"""Advances the address counters after a restore.

The address counter of a merchant is the index of the account's next address. Invoices
that were made after the backup have addresses beyond the counter in the backup. Such an
address must not be given out again. So this module searches the chain for used addresses
(BIP44, "Account discovery"), and asks the owner to confirm the new counters.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from btcpay.bitcoin.address import address_of
from btcpay.bitcoin.extended_key import InvalidChild
from btcpay.chain.explorers.pool import open_explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.rescan import scripts_paid_since
from btcpay.chain.used_addresses import AT_ONCE, LOOK_AHEAD, AddressSearch
from btcpay.http.http_client import Session
from btcpay.merchants.account import derive, refuse_other_network, stored_account
from btcpay.merchants.merchants import gap_of_merchant
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError, ExplorerError
from btcpay.values.networks import Network
from storage.database import Database
from storage.models import Merchant
from storage.queries import blocks, merchants, sessions
from storage.statement import replace

# The number of first addresses that the owner sees of each account, to notice if somebody has
# replaced its key.
ADDRESSES_TO_SHOW = 3
# The usual number of addresses to leave out after the last used one. Some of them were given out
# after the backup, and never paid.
SKIP = 100
MOST_SKIP = 10_000
# A search ends after a run of unused addresses (the greater of --skip and LOOK_AHEAD). Blocks are
# read only once: for this many runs of addresses of each merchant.
RUNS_IN_BLOCKS = 20
OF_PEERS = ". Name nodes that run in BLOCKTILL_PEERS, or an explorer for this command"


@dataclass(frozen=True)
class Move:
    """The advance of a merchant's address counter, from `before` to `next_index`.

    - `merchant`: the merchant's name.
    - `used`: the indexes, from `before` on, of addresses that the chain shows as used.
    - `gap_limit`: the gap limit that the wallet needs with the new counter.
    - `addresses`: the first addresses of the account.
    """

    merchant_id: int
    merchant: str
    before: int
    used: tuple[int, ...]
    next_index: int
    gap_limit: int
    addresses: tuple[str, ...]


# Asks the owner to confirm the restore. The arguments are the moves, the names of merchants
# that would be lost, and the programs that the next check runs. Raises if the owner declines.
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
    """Computes the new value of each address counter, without changing the counters.

    A new counter leaves out `skip` addresses after the last used one. `counters` has the
    counters of the database that will be replaced, by account key. No new counter is
    lower than the one in `counters`. `is_copy` is True if `db` is a copy of a backup,
    and False if it is the database in use. Raises CommandError if the chain cannot be
    searched, or if an account has no more addresses.
    """
    # The calls are counted but not limited, since the shop is closed during a restore.
    quota = Quota(db, sys.maxsize, clock)
    explorers = open_explorers(settings, quota, Session(AT_ONCE, settings.proxy))
    moves = []
    unused_in_a_row = max(skip, LOOK_AHEAD)
    try:
        if settings.explorers:
            explorers.require_chain(blocks.tip_height(db) or 0)
            is_used: Callable[[str], bool] = explorers.is_used
        else:
            count = unused_in_a_row * RUNS_IN_BLOCKS
            is_used = _is_in_blocks(db, settings, count, clock, is_copy=is_copy)
        for row in db.rows(merchants.ALL):
            search = _search_ahead(is_used, row, settings.network, unused_in_a_row)
            next_index = max(
                search.first_unused + skip,
                counters.get(row.account_key, 0),
            )
            moves.append(_move(db, row, settings.network, search.used, next_index))
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
    db: Database, settings: Settings, count: int, clock: Clock, is_copy: bool
) -> Callable[[str], bool]:
    """Returns a function that is True for an address that a block since the backup pays.

    The function knows the next `count` addresses of each merchant, and raises
    ExplorerError for others.
    """
    scripts_by_address = _next_scripts(db, settings.network, count)
    paid_scripts: Set[bytes] = set()
    if scripts_by_address:
        scripts = set(scripts_by_address.values())
        paid_scripts = scripts_paid_since(db, settings, clock, scripts, is_copy)

    def is_used(address: str) -> bool:
        if address not in scripts_by_address:
            raise ExplorerError(
                f"{count} addresses are too few to search for: raise --skip"
            )
        return scripts_by_address[address] in paid_scripts

    return is_used


def _next_scripts(db: Database, network: Network, count: int) -> dict[str, bytes]:
    """Returns the scripts of the next `count` addresses of each merchant, by address."""
    scripts_by_address: dict[str, bytes] = {}
    for row in db.rows(merchants.ALL):
        account = stored_account(row.descriptor)
        for index in range(row.next_index, row.next_index + count):
            script = account.script(index)
            scripts_by_address[address_of(script, network)] = script
    return scripts_by_address


def _search_ahead(
    is_used: Callable[[str], bool],
    merchant: Merchant,
    network: Network,
    unused_in_a_row: int,
) -> AddressSearch:
    """Searches for used addresses, from the merchant's address counter on.

    The search ends after this number of unused addresses in a row. Raises ExplorerError
    if the chain cannot be searched.
    """
    search = AddressSearch(merchant.next_index, unused_in_a_row)
    search.find(lambda index: is_used(derive(merchant.descriptor, index, network)))
    return search


def _move(
    db: Database, row: Merchant, network: Network, used: list[int], next_index: int
) -> Move:
    """Returns the advance of the merchant's counter to `next_index`.

    `used` are the indexes of the used addresses that were found. Raises CommandError if
    the account is of another network.
    """
    refuse_other_network(stored_account(row.descriptor), network)
    first_addresses = [
        derive(row.descriptor, index, network) for index in range(ADDRESSES_TO_SHOW)
    ]
    gap = gap_of_merchant(db, replace(row, next_index=next_index), used)
    return Move(
        merchant_id=row.id,
        merchant=row.name,
        before=row.next_index,
        used=tuple(used),
        next_index=next_index,
        gap_limit=gap.limit,
        addresses=tuple(first_addresses),
    )


def apply_moves(db: Database, moves: Iterable[Move]) -> None:
    """Advances the address counters. Ends all sessions, login links and download links.

    A counter that is already higher stays as it is. The sessions end, since the backup
    may contain sessions that the owner ended after the backup was made.
    """
    with db.write():
        for move in moves:
            db.run(merchants.FORWARD, id=move.merchant_id, next_index=move.next_index)
        for query in sessions.END_EVERYTHING:
            db.run(query)
