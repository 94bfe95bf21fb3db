"""Finds payments in blocks that are newer than a restored database.

A restore needs this if the shop's sources cannot look up addresses.
"""

import logging
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime

from btcpay.bitcoin.header import Header, parse_header
from btcpay.chain.first_header import BEFORE, BELOW, headers_above, keep_first_header
from btcpay.chain.headers import work_of
from btcpay.chain.pool import Pool, open_sources
from btcpay.chain.sources import MAX_BLOCKS_BEHIND, BlockSource, fetch_proven_block
from btcpay.settings.settings import Settings
from btcpay.values.errors import ExplorerError, FetchError
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import Block
from storage.queries import blocks, merchants

log = logging.getLogger(__name__)
Clock = Callable[[], datetime]


def scripts_paid_since(
    db: Database,
    settings: Settings,
    now: Clock,
    scripts: Set[bytes],
    is_copy: bool,
) -> set[bytes]:
    """Returns those of `scripts` that blocks newer than the restored database pay.

    `is_copy` is True if the database was not used since its backup: then the blocks
    after its newest one are read. Otherwise a check may have added blocks since the
    restore, so the blocks since the last invoice are read. When the sources reach their
    time limit, they are opened again for the remaining blocks. Raises ExplorerError if
    headers or a block cannot be fetched.
    """
    with _open_pool(db, settings, now) as sources:
        headers = _newer_headers(db, settings, now, sources, is_copy)
    hashes = [header.hash for header in headers]
    paid: set[bytes] = set()
    read_count = 0
    while read_count < len(hashes):
        scripts_by_block = _paid_in_blocks(
            db,
            settings,
            now,
            hashes[read_count:],
            scripts,
        )
        for scripts_of_block in scripts_by_block:
            paid |= scripts_of_block
        read_count += len(scripts_by_block)
    return paid


def _paid_in_blocks(
    db: Database,
    settings: Settings,
    now: Clock,
    hashes: Sequence[str],
    scripts: Set[bytes],
) -> list[Set[bytes]]:
    """Returns for each block those of `scripts` that it pays, in the order of `hashes`.

    Ends early if the sources reach their time limit, but returns at least the first
    block's scripts. Raises ExplorerError if the first block cannot be read.
    """
    paid_by_block: list[Set[bytes]] = []
    with (
        _open_pool(db, settings, now) as sources,
        ThreadPoolExecutor(sources.concurrency) as threads,
    ):

        def paid_in(hash: str) -> Set[bytes]:
            block = sources.ask(
                lambda source: fetch_proven_block(source, hash), round_robin=True
            )
            return block.contents.outputs_by_script.keys() & scripts

        try:
            for paid in threads.map(paid_in, hashes):
                paid_by_block.append(paid)
        except ExplorerError:
            if not paid_by_block:
                raise
    return paid_by_block


@contextmanager
def _open_pool(
    db: Database,
    settings: Settings,
    now: Clock,
) -> Iterator[Pool[BlockSource]]:
    sources = open_sources(settings, db, now)
    if sources is None:
        raise ExplorerError("no source of blocks is set")
    try:
        yield sources
    finally:
        sources.close()
        sources.store_outcomes(db, settings, now())


def _newer_headers(
    db: Database,
    settings: Settings,
    now: Clock,
    sources: Pool[BlockSource],
    is_copy: bool,
) -> list[Header]:
    """Returns the headers of the blocks to read, from the chain with the most work.

    `is_copy` is that of `scripts_paid_since`. Raises ExplorerError.
    """
    network = settings.network
    created_ms = min(row.created_ms for row in db.rows(merchants.ALL))
    keep_first_header(db, network, sources, now, created_ms)
    our_height = db.get(blocks.TOP).height
    base = _last_certain_block(db, created_ms, is_copy)
    base_header = parse_header(bytes(base.header))

    def headers_of(source: BlockSource) -> list[Header]:
        headers = headers_above(
            network, source, base_header, base.height, now, most=None
        )
        their_height = base.height + len(headers)
        if their_height < our_height - MAX_BLOCKS_BEHIND:
            raise FetchError(
                f"shows {their_height} blocks, and {our_height} were known"
            )
        return headers

    answers = sources.ask_all(headers_of)
    headers = max(answers.results.values(), key=work_of)
    log.info("%d blocks are read, from %d on", len(headers), base.height + 1)
    return headers


def _last_certain_block(db: Database, created_ms: int, is_copy: bool) -> Block:
    """Returns the stored block after which blocks must be read.

    That block is BELOW blocks under the last block that was certainly read, so that a
    reorganisation does no harm, or the first stored block if that is higher. If
    `is_copy` is True, the newest stored block was certainly read. If not, only blocks
    that are older than the newest invoice by BEFORE or more count as certainly read;
    `created_ms` is used in place of that invoice's time if there is no invoice.
    """
    if is_copy:
        last = db.get_or_none(blocks.TOP)
    else:
        (last_invoice_ms,) = db.get(blocks.LAST_INVOICE)
        since = from_ms(last_invoice_ms or created_ms) - BEFORE
        last = db.get_or_none(blocks.LAST_BEFORE, mined_before=to_ms(since))
    height = 0
    if last:
        height = last.height - BELOW
    first_height = db.get(blocks.FIRST).height
    return db.get(blocks.AT, height=max(first_height, height))
