"""How much of the chain is known and read, and whether any money depends on it."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from btcpay import hooks
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.queries import blocks
from storage.queries.invoices import LATELY

# A third of the hour's calls is kept for headers and the mempool while many blocks are to be read.
KEPT_PART = 3


@dataclass(frozen=True)
class Progress:
    """The best block that we know; `behind` blocks up to it are still to be read."""

    height: int
    mined_at: datetime
    behind: int


class KnownBlocks(Protocol):
    """The columns of `blocks.KNOWN`, in whatever row they were read."""

    @property
    def height(self) -> int | None: ...
    @property
    def mined_ms(self) -> int | None: ...
    @property
    def behind(self) -> int: ...
    @property
    def is_at_stake(self) -> bool: ...


def progress_of(db: Database, now: datetime) -> Progress | None:
    """None until a first header is kept: when a merchant is added, or at the next check."""
    row = db.row(blocks.PROGRESS, finished_after=to_ms(now - LATELY))
    if row is None:
        return None
    return progress_from_row(db, row)


def progress_from_row(db: Database, row: KnownBlocks) -> Progress | None:
    """None until a first header is kept."""
    if row.height is None or row.mined_ms is None:
        return None
    behind = row.behind
    if behind and not (row.is_at_stake or _is_needed_by_parts(db)):
        behind = 0
    return Progress(row.height, from_ms(row.mined_ms), behind)


def hours_to_read(behind: int, per_hour: int) -> int:
    """The hours, rounded up, to read so many blocks with `per_hour` calls: one for each block."""
    calls_for_blocks = per_hour - per_hour / KEPT_PART
    return math.ceil(behind / calls_for_blocks)


def is_at_stake(db: Database, now: datetime) -> bool:
    """True if any money may come, go, or go back; if not, no block is read."""
    row = db.only(blocks.AT_STAKE, finished_after=to_ms(now - LATELY))
    return bool(row[0]) or _is_needed_by_parts(db)


def _is_needed_by_parts(db: Database) -> bool:
    return any(part.needs_blocks(db) for part in hooks.of(hooks.Blocks))


def first_needed_ms(db: Database) -> int | None:
    """The time of the first invoice, or from which a part needs blocks; None before both."""
    times_ms = [db.only(blocks.FIRST_INVOICE)[0]]
    times_ms += [part.first_needed_ms(db) for part in hooks.of(hooks.Blocks)]
    known_ms = [time_ms for time_ms in times_ms if time_ms is not None]
    return min(known_ms, default=None)
