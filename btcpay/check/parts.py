"""Runs the work of parts (optional plug-ins) on blocks.

1. For each block, each part returns the data in the block that it needs. If a part
   fails to do so, its work on the block is stored for a later run.
2. The work is stored as planned, in the database transaction that marks the block as
   read, or removes it from the chain.
3. Afterwards the work is done, in a separate database transaction for each part. If
   that transaction fails, the work is retried in a later run.

Parts may do their work in any order, with one exception: a part must undo the changes
from removed blocks before it processes another block.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from btcpay import hooks
from btcpay.invoices.attention import update_attention
from btcpay.invoices.part_work import Work, attempt, note_failure, plan, work_of
from btcpay.proofs.block import ProvenBlock
from btcpay.settings.settings import Settings
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.queries import invoices, part_work
from storage.queries.totals import balances

# The maximum number of work items of each kind in a run.
MOST_AT_ONCE = 100


class PartMatch(NamedTuple):
    """A part (an optional plug-in), and the data that it needs from a block.

    The data, `matches`, is None if the part has failed to search the block.
    """

    part: str
    matches: Any


def part_matches_of(
    db: Database,
    height: int,
    block: ProvenBlock,
    now: datetime,
) -> list[PartMatch]:
    """Asks each part (optional plug-in) which data of this block it needs.

    Returns the parts that need some, each with the data. A part that fails to answer is
    included, with None instead of the data.
    """
    part_matches: list[PartMatch] = []
    for part, hook in hooks.by_part(hooks.Blocks).items():
        try:
            matches = hook.matches(db, height, block)
        except Exception as error:  # noqa: BLE001 - the edge of a part
            note_failure(db, Work(part, "block", height), error, now)
            part_matches.append(PartMatch(part, None))
            continue
        if matches:
            part_matches.append(PartMatch(part, matches))
    return part_matches


def plan_block(
    db: Database,
    part_matches: Sequence[PartMatch],
    height: int,
    now: datetime,
) -> None:
    """Stores which parts (optional plug-ins) must do work on the block.

    Call this in the database transaction that marks the block as read. Afterwards
    `work_on_block` does the work. `part_matches` is the result of `part_matches_of` for
    the block.
    """
    for part_match in part_matches:
        plan(db, Work(part_match.part, "block", height), now)


def plan_undo(db: Database, height: int, now: datetime) -> None:
    """Stores that each part (optional plug-in) must undo changes from blocks above `height`.

    Call this in the database transaction that removes these blocks from the chain.
    Afterwards `undo_planned` does the work.
    """
    db.run(part_work.CUT, height=height)
    for part in hooks.by_part(hooks.Blocks):
        plan(db, Work(part, "undo", height), now)


def work_on_block(
    db: Database,
    settings: Settings,
    part_matches: Sequence[PartMatch],
    height: int,
    block: ProvenBlock,
    prices: Mapping[str, Decimal],
    now: datetime,
) -> None:
    """Makes each part (optional plug-in) do its work on a block.

    The work of a part is left to a later run if the part could not say which data of
    the block it needs, or if it must first undo its changes from removed blocks.
    `part_matches` is the result of `part_matches_of` for the block. `prices` are those
    of one bitcoin, by currency.
    """
    by_part = hooks.by_part(hooks.Blocks)
    for part, matches in part_matches:
        must_undo = _must_undo(db, part)
        if matches is None or must_undo:
            continue
        connect = partial(
            by_part[part].connect_block,
            db,
            settings,
            height,
            block,
            matches,
            prices,
            now,
        )
        attempt(db, Work(part, "block", height), now, connect)


def _must_undo(db: Database, part: str) -> bool:
    """True if the part must first undo its changes from removed blocks."""
    return db.get_or_none(part_work.OF_KIND, part=part, kind="undo") is not None


def undo_planned(db: Database, settings: Settings, now: datetime) -> None:
    """Makes the parts (optional plug-ins) undo changes from blocks that left the chain.

    The lowest height comes first.
    """
    by_part = hooks.by_part(hooks.Blocks)
    for row in db.rows(part_work.DUE, kind="undo", now=to_ms(now), limit=MOST_AT_ONCE):
        work = work_of(row)
        hook = by_part.get(row.part)
        if hook is None:  # the part has been uninstalled
            db.run(part_work.DONE, **work.key)
            continue
        disconnect = partial(hook.disconnect_blocks, db, settings, row.height, now)
        attempt(db, work, now, disconnect)


def run_parts(db: Database, settings: Settings, now: datetime) -> None:
    """Calls the AfterCheck hook of each part (optional plug-in).

    A failure is stored until the part's hook succeeds.
    """
    for part, hook in hooks.by_part(hooks.AfterCheck).items():
        work = Work(part, "check")
        try:
            hook.on_check(db, settings, now)
        except Exception as error:  # noqa: BLE001 - the edge of a part
            note_failure(db, work, error, now)
        else:
            db.run(part_work.DONE, **work.key)


def blocks_due(db: Database, now: datetime, most: int) -> dict[int, list[Work]]:
    """Returns the due work of parts (optional plug-ins) on at most `most` blocks, by height.

    Skips parts that must first undo their changes from removed blocks.
    """
    rows = db.rows(part_work.DUE, kind="block", now=to_ms(now), limit=MOST_AT_ONCE)
    parts = hooks.by_part(hooks.Blocks)
    ready_parts = {part for part in parts if not _must_undo(db, part)}
    due: dict[int, list[Work]] = {}
    for row in rows:
        if row.part not in ready_parts:
            continue
        if row.height in due or len(due) < most:
            due.setdefault(row.height, []).append(work_of(row))
    return due


def forget_others(
    db: Database,
    works: Sequence[Work],
    part_matches: Sequence[PartMatch],
) -> None:
    """Deletes the works of parts (optional plug-ins) that need no data from the block.

    `works` are works on this block, and `part_matches` the parts that need its data.
    """
    concerned_parts = {part_match.part for part_match in part_matches}
    for work in works:
        if work.part not in concerned_parts:
            db.run(part_work.DONE, **work.key)


def count_again(db: Database, settings: Settings, now: datetime) -> None:
    """Counts again the totals of parts (optional plug-ins) that could not be counted.

    Such a total is, for example, the sum of a bill's invoices.
    """
    for row in db.rows(part_work.DUE, kind="money", now=to_ms(now), limit=MOST_AT_ONCE):
        with db.write():
            invoice = db.get_or_none(invoices.WHOLE, id=row.invoice_id)
            if invoice:
                balances.lock(db, invoice.merchant_id)
                update_attention(db, settings, invoice.id, now)
            # If the counting has failed again, `failures` has changed, and the row stays.
            as_read: Values = {"failures": row.failures}
            db.run(part_work.DONE_AS_READ, **work_of(row).key | as_read)
