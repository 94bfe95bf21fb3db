"""How far the chain is known and read, and whether anything hangs on it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from btcpay.times import from_ms, to_ms
from storage.database import Database
from storage.queries import blocks

LATELY = timedelta(hours=168)  # so long after its end an invoice may still be paid


@dataclass(frozen=True)
class Progress:
    """The best block that we know, and how many blocks up to it are still to be read."""

    height: int
    mined_at: datetime
    behind: int


def progress_of(db: Database, which: str, now: datetime) -> Progress | None:
    """`which` blocks are read: BTCPAY_BLOCKS. None before the first invoice is checked."""
    top = db.row(blocks.TOP)
    if top is None:
        return None
    behind = db.only(blocks.UNREAD)[which] if is_at_stake(db, now) else 0
    return Progress(top["height"], from_ms(top["mined_at"]), behind)


def is_at_stake(db: Database, now: datetime) -> bool:
    """Whether any money may come or go; otherwise no block is read."""
    finished_after = to_ms(now - LATELY)
    return bool(
        db.row(blocks.AT_STAKE, finished_after=finished_after) or db.row(blocks.MONEY_AT_STAKE)
    )
