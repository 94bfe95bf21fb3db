"""Address counters after a restore: planned with the chain, moved once the owner agrees."""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from btcpay.backup.discovery import Move, apply_moves, plan_moves
from btcpay.chain.explorers.open import open_explorers, open_quota
from btcpay.merchants.sessions import end_every
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError, ExplorerError
from btcpay.values.networks import SANDBOX_PORT, SANDBOX_URL
from storage.database import Database

# Shows the owner the moves and the names of merchants that would be lost; raises when declined.
Agree = Callable[[Sequence[Move], Sequence[str]], None]
Clock = Callable[[], datetime]
OF_SANDBOX = (
    ". The explorer is the sandbox's own, which ends with it: start its chain alone with"
    f" `{sys.executable} -m btcpay.sandbox --port {SANDBOX_PORT} --state var/sandbox`"
)


def plan(
    db: Database,
    settings: Settings,
    skip: int,
    clock: Clock,
    counters: Mapping[str, int] | None = None,
) -> list[Move]:
    """Where the counters must stand, `skip` beyond what the chain has seen. Raises CommandError.

    `counters` are those of another database, by account: none falls behind them.
    """
    # Nothing is refused: a restore that stops for an hour keeps a shop closed. It counts, though.
    explorers = open_explorers(settings, open_quota(settings, db, clock, sys.maxsize))
    try:
        return plan_moves(db, explorers, settings.network, skip, counters or {})
    except ExplorerError as error:
        raise CommandError(
            f"nothing was changed, the chain must be asked first: {error}"
            f"{OF_SANDBOX if SANDBOX_URL in settings.explorers else ''}"
        ) from None
    finally:
        explorers.close()


def move_counters(
    db: Database, settings: Settings, skip: int, agree: Agree, clock: Clock
) -> list[Move]:
    """Moves the counters of the database in place, as after pg_restore. Raises CommandError.

    Merchants' browsers are logged out: a session that was ended must not come back.
    """
    moves = plan(db, settings, skip, clock)
    agree(moves, [])
    apply_moves(db, moves)
    end_every(db)
    return moves
