"""Address counters after a restore: planned with the chain, moved once the owner agrees."""

import sys
from collections.abc import Callable, Sequence
from datetime import datetime

from btcpay import http_client
from btcpay.errors import CommandError, ExplorerError
from btcpay.explorers.pool import Explorers
from btcpay.explorers.quota import Budget
from btcpay.settings import Settings
from btcpay.wallet.discovery import Chain, Move, apply_moves, plan_moves
from storage.database import Database

# Asks the owner: whoever declines raises, and nothing is changed.
Agree = Callable[[Sequence[Move]], None]
Clock = Callable[[], datetime]


def plan(
    db: Database,
    settings: Settings,
    skip: int,
    clock: Clock,
    counters: dict[str, int] | None = None,
) -> list[Move]:
    """Where the counters of this database must stand, `skip` beyond what the chain has seen.

    `counters` are those of another database, by account: none falls behind them. Raises
    CommandError when nobody can tell.
    """
    # Nothing is refused: a restore that stops for an hour keeps a shop closed. It counts, though.
    budget = Budget(db, sys.maxsize, clock)
    explorers = Explorers(settings.explorers, http_client.new_session(), budget)
    try:
        chain = Chain(explorers, settings.network)
        return plan_moves(db, chain, settings.network, skip, counters or {})
    except ExplorerError as error:
        raise CommandError(f"nothing was changed, the chain must be asked first: {error}") from None
    finally:
        explorers.close()


def move_counters(
    db: Database, settings: Settings, skip: int, agree: Agree, clock: Clock
) -> list[Move]:
    """Moves the counters of the database in place, as after pg_restore. Raises CommandError."""
    moves = plan(db, settings, skip, clock)
    agree(moves)
    apply_moves(db, moves)
    return moves
