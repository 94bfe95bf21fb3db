"""Address counters after a restore: planned with the chain, moved once the owner agrees.

Address discovery (BIP44): addresses may have been given out after the backup was made, and no used
one is given again.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from btcpay.bitcoin.keys import InvalidChild
from btcpay.chain.explorers.pool import open_explorers
from btcpay.chain.explorers.quota import Quota
from btcpay.chain.newer import newer_blocks, paid_in
from btcpay.merchants.account import derive, parse_account, stored_account
from btcpay.merchants.merchants import gap_of_merchant
from btcpay.merchants.sessions import end_every
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError, ExplorerError
from btcpay.values.networks import SANDBOX_PORT, SANDBOX_URL, Network
from storage.database import Database
from storage.models import Merchant
from storage.queries import blocks, merchants

# Behind so many unused addresses in a row no used one is expected (BIP44: 20). A hundred unpaid
# invoices in a row are more common than one would think: a crawler presses a link's button.
LOOK_AHEAD = 100
SHOWN = 3  # first addresses of each merchant, by which its owner recognises a planted account key
MORE = 1000  # addresses are matched at once, so that blocks are seldom read twice
MOST_USED = 100_000  # of one merchant; an explorer that calls every address used must end somewhere
OF_SANDBOX = (
    ". The explorer is the sandbox's, and ends with it: start its chain alone with"
    f" `{sys.executable} -m btcpay.sandbox --port {SANDBOX_PORT} --state var/sandbox`"
)
OF_PEERS = (
    ". Name nodes that run in BTCPAY_PEERS, or for this command an explorer in BTCPAY_EXPLORERS"
)


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


# Shows the owner the moves, the names of merchants that would be lost, and the programs that the
# next check runs; raises when declined.
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
    nothing. Raises CommandError, also when the chain could not be asked about an address.
    """
    rows, run, moves = db.rows(merchants.ALL), max(skip, LOOK_AHEAD), []
    try:
        if settings.explorers or not rows:
            found = _used_by_index(db, settings, rows, run, clock)
        else:
            found = _used_by_blocks(db, settings, rows, run, clock, is_copy)
        for row in rows:
            used = found[row.id]
            after = (used[-1] + 1 if used else row.next_index) + skip
            after = max(after, counters.get(row.account_key, 0))
            moves.append(_move(db, row, settings.network, used, after))
    except InvalidChild as error:
        raise CommandError(f"nothing was changed: {error}") from None
    except ExplorerError as error:
        hint = OF_SANDBOX if SANDBOX_URL in settings.explorers else ""
        raise CommandError(
            "nothing was changed, the chain must be asked first:"
            f" {error}{hint if settings.explorers else OF_PEERS}"
        ) from None
    return moves


def _used_by_index(
    db: Database, settings: Settings, rows: list[Merchant], run: int, clock: Clock
) -> dict[int, list[int]]:
    # Nothing is refused: a restore that stops for an hour keeps a shop closed. It counts, though.
    explorers = open_explorers(settings, Quota(db, sys.maxsize, clock))

    accounts = {row.id: row.descriptor for row in rows}

    def is_used(id: int, index: int) -> bool:
        return explorers.is_used(derive(accounts[id], index, settings.network))

    try:
        explorers.require_chain(blocks.tip_height(db) or 0)
        return {row.id: _used_ahead(is_used, row, run) for row in rows}
    finally:
        explorers.close()


def _used_by_blocks(
    db: Database, settings: Settings, rows: list[Merchant], run: int, clock: Clock, is_copy: bool
) -> dict[int, list[int]]:
    """The same, of addresses that a block pays; all are read again for one far ahead."""
    made_ms = min(row.created_at for row in rows)
    hashes = newer_blocks(db, settings, clock, made_ms, is_copy)

    def used_within(window: int) -> dict[int, list[int]]:
        scripts = {
            stored_account(row.descriptor).script(index): (row.id, index)
            for row in rows
            for index in range(row.next_index, row.next_index + window)
        }
        paid = {scripts[one] for one in paid_in(db, settings, clock, hashes, scripts)}
        return {row.id: _used_ahead(lambda *place: place in paid, row, run) for row in rows}

    needed, window = run, 0
    while needed > window:
        window = needed + MORE
        used = used_within(window)
        needed = run + max((used[row.id] or [-1])[-1] + 1 - row.next_index for row in rows)
    return used


def _used_ahead(is_used: Callable[[int, int], bool], merchant: Merchant, run: int) -> list[int]:
    """Used indexes from the counter on, up to `run` unused ones in a row. Raises ExplorerError.

    `is_used` gets the merchant's id and an index.
    """
    used: list[int] = []
    index = merchant.next_index
    while index < (used[-1] + 1 if used else merchant.next_index) + run:
        if is_used(merchant.id, index):
            used.append(index)
        if len(used) > MOST_USED:
            raise ExplorerError("the explorers say that every address is used")
        index += 1
    return used


def _move(db: Database, row: Merchant, network: Network, used: list[int], after: int) -> Move:
    parse_account(row.descriptor, network)  # refuses what is no account of this network
    first = tuple(derive(row.descriptor, n, network) for n in range(SHOWN))
    gap = gap_of_merchant(db, row, used, after)
    return Move(row.id, row.name, row.next_index, tuple(used), after, gap.limit, first)


def apply_moves(db: Database, moves: Iterable[Move]) -> None:
    """Moves the counters; one that is further already stays where it is.

    Merchants' browsers are logged out: a session that was ended must not come back.
    """
    with db.write():
        for move in moves:
            db.run(merchants.FORWARD, id=move.merchant_id, next_index=move.next_index)
    end_every(db)
