"""Marks a block as read and stores all of its changes, in one database transaction."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from btcpay.check.apply import try_apply
from btcpay.check.facts import facts_of, read_spends_again, spends_of
from btcpay.check.parts import PartMatch, plan_block
from btcpay.check.report import Report
from btcpay.invoices.part_work import Work
from btcpay.proofs.block import ProvenBlock
from btcpay.settings.settings import Settings
from btcpay.settlement.values import Scan, SeenOutput
from btcpay.values.times import to_ms
from storage.database import Database
from storage.models import Block
from storage.queries import blocks, meta, part_work


class FetchedBlock(NamedTuple):
    """A verified block, and the host that returned it."""

    block: ProvenBlock
    host: str


def store_block(
    db: Database,
    settings: Settings,
    row: Block,
    fetched: FetchedBlock,
    part_matches: Sequence[PartMatch],
    prices: Mapping[str, Decimal],
    now: datetime,
    report: Report,
) -> set[str] | None:
    """Marks the block as read, and stores its changes in invoices.

    Everything is stored in one database transaction. Returns the ids of the invoices
    whose changes could not be stored. If there are any, the block is marked as unread
    again. Returns None if another run of the check has read the block meanwhile.

    - `row`: the block's row.
    - `fetched`: the block's contents.
    - `part_matches`: the result of `part_matches_of` for this block.
    - `prices`: the prices of one bitcoin by currency, for new payments.
    - `report`: gets the changed statuses and the failures.
    """
    block = fetched.block
    with db.write():
        # The lock serializes the blocks, so that each sees the results of the one before.
        meta.lock(db)
        _, lowest_unread = db.get(blocks.UNREAD)
        if not _mark_as_read(db, row, block, lowest_unread, now):
            return None
        tip_height = blocks.tip_height(db) or row.height

        def new_scan() -> Scan:
            return Scan(now, tip_height, prices=prices, explorer=fetched.host)

        scans = facts_of(db, settings.network.name, row.height, block, new_scan)
        failed = try_apply(db, settings, scans, now, report)
        read_spends_again(db, _new_coins(scans, failed))
        plan_block(db, part_matches, row.height, now)
        work = Work(part_work.CORE, "block", row.height)
        db.run(part_work.DONE, **work.key)
        if failed:
            db.run(blocks.READ_AGAIN, height=row.height)
        if lowest_unread == row.height:
            _forget_spends(db, tip_height)
    return failed


def _mark_as_read(
    db: Database,
    row: Block,
    block: ProvenBlock,
    lowest_unread: int | None,
    now: datetime,
) -> bool:
    """Marks the block as read. Returns False if another run has read it meanwhile.

    If an earlier block is unread, also stores the coins that this block spends.
    """
    spends = None
    is_earlier_unread = lowest_unread is not None and lowest_unread < row.height
    if is_earlier_unread:
        spends = spends_of(block)
    row_count = db.run(blocks.READ, hash=row.hash, at=to_ms(now), spends=spends)
    return row_count == 1


def _new_coins(scans: Mapping[str, Scan], failed: Collection[str]) -> list[SeenOutput]:
    """Returns the outputs that the block pays to invoices.

    Outputs to the invoices whose ids are in `failed` are left out.
    """
    coins: list[SeenOutput] = []
    for invoice_id, scan in scans.items():
        if invoice_id not in failed:
            coins += scan.confirmed
    return coins


def _forget_spends(db: Database, tip_height: int) -> None:
    """Deletes the stored spends of each block below which no block is unread."""
    _, lowest_unread = db.get(blocks.UNREAD)
    if lowest_unread is None:
        lowest_unread = tip_height + 1
    db.run(blocks.FORGET_SPENDS, height=lowest_unread)
