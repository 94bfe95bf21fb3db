"""Payments in blocks that are newer than a copy of the database.

Shops that can ask no address index need this after a restore.
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
    db: Database, settings: Settings, now: Clock, scripts: Set[bytes], is_copy: bool
) -> set[bytes]:
    """The scripts among these that are paid by blocks newer than the database's newest.

    If the database is no copy, by those newer than its last invoice: a check may have read blocks
    since the database was put back. Sources whose time for a run is used up are asked anew. Raises
    ExplorerError.
    """
    with _open_pool(db, settings, now) as sources:
        headers = _newer_headers(db, settings, now, sources, is_copy)
    hashes = [header.hash for header in headers]
    paid: set[bytes] = set()
    done = 0
    while done < len(hashes):
        read = _paid_in_blocks(db, settings, now, hashes[done:], scripts)
        for scripts_of_block in read:
            paid |= scripts_of_block
        done += len(read)
    return paid


def _paid_in_blocks(
    db: Database,
    settings: Settings,
    now: Clock,
    hashes: Sequence[str],
    scripts: Set[bytes],
) -> list[Set[bytes]]:
    """The paid scripts in each block, as far as one run of the sources reads: at least one block.

    Raises ExplorerError if not even the first block can be read.
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
    db: Database, settings: Settings, now: Clock
) -> Iterator[Pool[BlockSource]]:
    sources = open_sources(settings, db, now)
    if sources is None:
        raise ExplorerError("no source of blocks is set")
    try:
        yield sources
    finally:
        sources.close()
        sources.note(db, settings, now())


def _newer_headers(
    db: Database,
    settings: Settings,
    now: Clock,
    sources: Pool[BlockSource],
    is_copy: bool,
) -> list[Header]:
    """The headers of the blocks to read, from the chain that shows the most work."""
    network = settings.network
    created_ms = min(row.created_ms for row in db.rows(merchants.ALL))
    keep_first_header(db, network, sources, now, created_ms)
    top = db.only(blocks.TOP).height
    base = _last_certain_block(db, created_ms, is_copy)
    base_header = parse_header(bytes(base.header))

    def headers_of(source: BlockSource) -> list[Header]:
        headers = headers_above(network, source, base_header, base.height, now, None)
        tip = base.height + len(headers)
        if tip < top - MAX_BLOCKS_BEHIND:
            raise FetchError(f"shows {tip} blocks, and {top} were known")
        return headers

    headers_by_source, _ = sources.ask_all(headers_of)
    headers = max(headers_by_source.values(), key=work_of)
    log.info("%d blocks are read, from %d on", len(headers), base.height + 1)
    return headers


def _last_certain_block(db: Database, created_ms: int, is_copy: bool) -> Block:
    """Some blocks below the last one that needs not be read; not below the first that we keep."""
    if is_copy:
        last = db.row(blocks.TOP)
    else:
        last_invoice_ms = db.only(blocks.LAST_INVOICE)[0]
        since = from_ms(last_invoice_ms or created_ms) - BEFORE
        last = db.row(blocks.LAST_BEFORE, mined_before=to_ms(since))
    height = 0
    if last:
        height = last.height - BELOW
    first_height = db.only(blocks.FIRST).height
    return db.only(blocks.AT, height=max(first_height, height))
