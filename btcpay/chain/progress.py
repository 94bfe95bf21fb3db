"""How far the chain is known and read, for whoever watches the service."""

from dataclasses import dataclass
from datetime import datetime

from btcpay.times import from_ms
from storage.database import Database
from storage.queries import blocks


@dataclass(frozen=True)
class Progress:
    """The best block that we know, and how many blocks up to it are still to be read."""

    height: int
    mined_at: datetime
    behind: int


def progress_of(db: Database, which: str) -> Progress | None:
    """`which` blocks are read: BTCPAY_BLOCKS. None before the first invoice is checked."""
    top = db.row(blocks.TOP)
    if top is None:
        return None
    behind = db.only(blocks.UNREAD)[which]
    return Progress(top["height"], from_ms(top["mined_at"]), behind)
