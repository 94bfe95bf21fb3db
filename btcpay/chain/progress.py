"""The part of the chain that is known and read, and the money that depends on it."""

import math
from dataclasses import dataclass
from datetime import datetime

from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.queries import blocks
from storage.queries.invoices import LATELY
from storage.queries.lists import today

# Of the hour's calls: kept for headers and the mempool while many blocks are to be read.
KEPT_PART = 3


@dataclass(frozen=True)
class Progress:
    """The best block that we know, and how many blocks up to it are still to be read."""

    height: int
    mined_at: datetime
    behind: int


def progress_of(db: Database, now: datetime) -> Progress | None:
    """None until a first header is kept: when a merchant is made, or at the next check."""
    found = db.row(blocks.PROGRESS, finished_after=to_ms(now - LATELY))
    if found:
        return progress_from_row(found)
    return None


def progress_from_row(found: blocks.Known | today.Shop) -> Progress | None:
    if found.height is None or found.mined_at is None:
        return None
    behind = found.behind if found.is_at_stake else 0
    return Progress(found.height, from_ms(found.mined_at), behind)


def hours_to_read(behind: int, per_hour: int) -> int:
    """The hours that so many blocks take with that budget, at one call for each."""
    return math.ceil(behind / (per_hour - per_hour / KEPT_PART))


def is_at_stake(db: Database, now: datetime) -> bool:
    """True if any money may come, go, or go back; otherwise no block is read."""
    return bool(db.only(blocks.AT_STAKE, finished_after=to_ms(now - LATELY))[0])
