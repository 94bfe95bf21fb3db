"""The part of the chain that is known and read, and the money that depends on it."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from btcpay import hooks
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.queries import blocks
from storage.queries.invoices import LATELY

# Of the hour's calls: kept for headers and the mempool while many blocks are to be read.
KEPT_PART = 3


@dataclass(frozen=True)
class Progress:
    """The best block that we know, and how many blocks up to it are still to be read."""

    height: int
    mined_at: datetime
    behind: int


class KnownBlocks(Protocol):
    """The columns of `blocks.KNOWN`, in whatever row they were read."""

    @property
    def height(self) -> int | None: ...
    @property
    def mined_at(self) -> int | None: ...
    @property
    def behind(self) -> int: ...
    @property
    def is_at_stake(self) -> bool: ...


def progress_of(db: Database, now: datetime) -> Progress | None:
    """None until a first header is kept: when a merchant is made, or at the next check."""
    row = db.row(blocks.PROGRESS, finished_after=to_ms(now - LATELY))
    if row is None:
        return None
    return progress_from_row(db, row)


def progress_from_row(db: Database, row: KnownBlocks) -> Progress | None:
    """The progress that a row says; None before the first header."""
    if row.height is None or row.mined_at is None:
        return None
    behind = row.behind
    if behind and not (row.is_at_stake or _is_needed_by_parts(db)):
        behind = 0
    return Progress(row.height, from_ms(row.mined_at), behind)


def hours_to_read(behind: int, per_hour: int) -> int:
    """The hours that so many blocks take with that budget, at one call for each."""
    return math.ceil(behind / (per_hour - per_hour / KEPT_PART))


def is_at_stake(db: Database, now: datetime) -> bool:
    """True if any money may come, go, or go back; otherwise no block is read."""
    of_invoices = db.only(blocks.AT_STAKE, finished_after=to_ms(now - LATELY))[0]
    return bool(of_invoices) or _is_needed_by_parts(db)


def _is_needed_by_parts(db: Database) -> bool:
    return any(part.needs_blocks(db) for part in hooks.of(hooks.Blocks))


def first_needed_ms(db: Database) -> int | None:
    """When the first block could be needed: money was asked for, or a part began; None before."""
    times = [db.only(blocks.FIRST_INVOICE)[0]]
    times += [part.first_needed_ms(db) for part in hooks.of(hooks.Blocks)]
    return min((ms for ms in times if ms is not None), default=None)
