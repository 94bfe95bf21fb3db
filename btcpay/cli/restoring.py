"""What every restore does first: a copy of this version, the chain asked, the owner's yes."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from btcpay.cli.context import say
from btcpay.errors import CommandError, ExplorerError
from btcpay.explorers.open import open_explorers, open_quota
from btcpay.networks import SANDBOX_PORT, SANDBOX_URL
from btcpay.settings import Settings
from btcpay.times import to_ms, utc_now
from btcpay.wallet.discovery import Move, apply_moves, plan_moves
from storage import migrate
from storage.backup import copies
from storage.database import Database, Row, open_database
from storage.queries import idempotency, meta

OF_SANDBOX = (
    ". The explorer is the sandbox's own, which ends with `make run`: start it alone with"
    f" `.venv/bin/python -m btcpay.sandbox --port {SANDBOX_PORT} --state var/sandbox`"
)


@dataclass(frozen=True)
class Prepared:
    """A copy of a backup at this version, still beside the database."""

    url: str
    migrated: list[str]
    moves: list[Move]

    def finish(self, settings: Settings) -> None:
        """Makes the copy what shall be served: counters, no keys that somebody holds, a note."""
        db = open_database(self.url)
        apply_moves(db, self.moves)
        with db.write():
            db.run(idempotency.FREE)
            meta.put(db, "restored_at", str(to_ms(utc_now())))
        db.close()

    def told(self) -> Row:
        """What the answer says of it."""
        return {"migrated": self.migrated, "merchants": told_of(self.moves)}


def prepare(
    settings: Settings, file: Path, new: Path, skip: int, counters: dict[str, int]
) -> Prepared:
    """Copies `file` to `new`, brings that to this version, asks the chain. Raises CommandError.

    `counters` are those of the database in place, by account: none falls behind them.
    """
    network, url = settings.network.name, f"sqlite:///{new}"
    copies.copy(file, new)
    contents = copies.inspect(new, file)
    if contents.network not in (None, network):
        raise CommandError(f"{file} belongs to {contents.network}, BTCPAY_NETWORK says {network}")
    if contents.version > migrate.VERSION:
        raise CommandError(
            f"{file} is at version {contents.version}, newer than this program's"
            f" {migrate.VERSION}: install the newer program"
        )
    migrated = migrate.migrate(url, network)
    db = open_database(url)
    try:
        return Prepared(url, migrated, plan(db, settings, skip, counters))
    finally:
        db.close()


def plan(
    db: Database, settings: Settings, skip: int, counters: dict[str, int] | None = None
) -> list[Move]:
    """Where the counters of this database must stand. Raises CommandError when nobody can tell."""
    # Nothing is refused: a restore that stops for an hour keeps a shop closed. It counts, though.
    explorers = open_explorers(settings, open_quota(settings, db, utc_now, sys.maxsize))
    try:
        return plan_moves(db, explorers, settings.network, skip, counters or {})
    except ExplorerError as error:
        raise CommandError(
            f"nothing was changed, the chain must be asked first: {error}"
            f"{OF_SANDBOX if SANDBOX_URL in settings.explorers else ''}"
        ) from None
    finally:
        explorers.close()


def agree(moves: Sequence[Move], network: str, yes: bool, question: str) -> None:
    """Shows what will be, and asks unless `yes`; ends the command when the owner declines."""
    say(f"This is a shop on {network} with {len(moves)} merchant(s); compare with their wallets:")
    for move in moves:
        say(f"{move.merchant}: the first addresses are {', '.join(move.first)}")
        seen = f"seen up to {move.used[-1]}" if move.used else "nothing seen beyond it"
        say(
            f"{move.merchant}: the address counter stands at {move.before}, {seen} on the chain;"
            f" it will be {move.after}. The wallet needs a gap limit of {move.gap_limit}."
        )
    if not yes:
        click.confirm(question, abort=True, err=True)


def told_of(moves: Sequence[Move]) -> list[Row]:
    """What the answer says of each merchant's counter."""
    return [
        {
            "merchant": move.merchant,
            "addresses": list(move.first),
            "before": move.before,
            "used": list(move.used),
            "next_index": move.after,
            "gap_limit": move.gap_limit,
        }
        for move in moves
    ]
