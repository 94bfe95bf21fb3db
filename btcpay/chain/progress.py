"""Reports how much of the chain is known and read, and whether blocks are needed."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from btcpay import hooks
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.queries import blocks
from storage.queries.invoices import LATELY

# While many blocks are unread, a third of the hour's calls is reserved for headers and mempool.
KEPT_PART = 3


@dataclass(frozen=True)
class Progress:
    """The newest known block, and the number of blocks that must still be read."""

    height: int
    mined_at: datetime
    behind: int


class KnownBlocks(Protocol):
    """A row that has the columns of `blocks.KNOWN`, and perhaps others."""

    @property
    def height(self) -> int | None: ...
    @property
    def mined_ms(self) -> int | None: ...
    @property
    def behind(self) -> int: ...
    @property
    def is_at_stake(self) -> bool: ...


def progress_of(db: Database, now: datetime) -> Progress | None:
    """Returns how far the best chain is read.

    Returns None if no header is stored yet. The first one is stored when a merchant is
    added, or by the next check.
    """
    row = db.get_or_none(blocks.PROGRESS, finished_after=to_ms(now - LATELY))
    if row is None:
        return None
    return progress_from_row(db, row)


def progress_from_row(db: Database, row: KnownBlocks) -> Progress | None:
    """Returns how far the best chain is read, from a row that the caller has loaded.

    Returns None if no header is stored yet.
    """
    if row.height is None or row.mined_ms is None:
        return None
    behind = row.behind
    if behind and not (row.is_at_stake or _is_needed_by_parts(db)):
        behind = 0
    return Progress(row.height, from_ms(row.mined_ms), behind)


def hours_to_read(behind: int, per_hour: int) -> int:
    """Returns how many hours it takes to read `behind` blocks, rounded up.

    `per_hour` is the quota of calls.
    """
    return math.ceil(minutes_to_read(behind, per_hour) / 60)


def minutes_to_read(behind: int, per_hour: int) -> int:
    """Returns how many minutes it takes to read `behind` blocks, rounded up.

    `per_hour` is the quota of calls. Each block costs one call, and a third of the
    quota is reserved for other calls.
    """
    calls_for_blocks = per_hour - per_hour / KEPT_PART
    return math.ceil(60 * behind / calls_for_blocks)


def is_at_stake(db: Database, now: datetime) -> bool:
    """True if blocks must be read.

    That is so if an invoice may be paid, if a merchant has a balance, or if a part (an
    optional plug-in) needs blocks.
    """
    (is_at_stake,) = db.get(blocks.AT_STAKE, finished_after=to_ms(now - LATELY))
    return bool(is_at_stake) or _is_needed_by_parts(db)


def _is_needed_by_parts(db: Database) -> bool:
    return any(part.needs_blocks(db) for part in hooks.of(hooks.Blocks))


def first_needed_ms(db: Database) -> int | None:
    """Returns the time from which blocks are needed, in Unix milliseconds.

    It is the time of the first invoice, or an earlier time that a part (an optional
    plug-in) needs. Returns None if there is neither.
    """
    (first_invoice_ms,) = db.get(blocks.FIRST_INVOICE)
    times_ms = [first_invoice_ms]
    times_ms += [part.first_needed_ms(db) for part in hooks.of(hooks.Blocks)]
    known_ms = [time_ms for time_ms in times_ms if time_ms is not None]
    return min(known_ms, default=None)
