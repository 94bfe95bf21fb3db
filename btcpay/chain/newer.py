"""Blocks that are newer than a copy of the database, for a restore that can ask no index."""

import logging
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import chain

from btcpay.bitcoin.header import Header, parse_header
from btcpay.chain.begin import BEFORE, BELOW, begin
from btcpay.chain.follow import check_header, check_headers, work_of
from btcpay.chain.pool import Pool, open_sources
from btcpay.chain.sources import MAX_BLOCKS_BEHIND, BlockSource
from btcpay.proofs.block import prove_block
from btcpay.settings.settings import Settings
from btcpay.values.errors import ExplorerError, FetchError
from btcpay.values.networks import Known, Network
from btcpay.values.times import from_ms, from_unix_s, to_ms
from storage.database import Database
from storage.models import Block
from storage.queries import blocks

log = logging.getLogger(__name__)
Clock = Callable[[], datetime]


def newer_blocks(
    db: Database, settings: Settings, now: Clock, made_ms: int, is_copy: bool
) -> list[str]:
    """Hashes of all blocks that may pay an address that the database does not know, ascending.

    They are those above its newest, and above its last invoice unless `is_copy`: since it was put
    back a check may have run. `made_ms` stands for a first invoice. Raises ExplorerError.
    """
    with _asked(db, settings, now) as sources:
        begin(db, settings.network, sources, now, made_ms)
        top, first = db.only(blocks.TOP).height, db.only(blocks.FIRST).height
        height = top - BELOW
        if not is_copy:
            last_at = from_ms(db.only(blocks.LAST_INVOICE)[0] or made_ms)
            row = db.row(blocks.LAST_BEFORE, mined_before=to_ms(last_at - BEFORE))
            height = min(height, row.height if row else first)
        base = db.only(blocks.AT, height=max(height, first))
        shown, _ = sources.ask_all(partial(_above, settings.network, base, top, now))
    headers = max(shown.values(), key=work_of)
    log.info("%d blocks are read, from %d on", len(headers), base.height + 1)
    return [header.hash for header in headers]


def paid_in(
    db: Database, settings: Settings, now: Clock, hashes: list[str], scripts: Collection[bytes]
) -> set[bytes]:
    """The scripts among these that the blocks pay. Raises ExplorerError.

    Sources whose time for a run is used up are asked anew, as by the next run.
    """
    found, done = set[bytes](), 0
    while done < len(hashes):
        before = done
        with _asked(db, settings, now) as sources, ThreadPoolExecutor(sources.at_once) as threads:
            try:
                for paid in threads.map(partial(_paid_in, sources, scripts), hashes[done:]):
                    found |= paid
                    done += 1
            except ExplorerError:
                if done == before:
                    raise
    return found


@contextmanager
def _asked(db: Database, settings: Settings, now: Clock) -> Iterator[Pool[BlockSource]]:
    sources = open_sources(settings, db, now)
    if sources is None:
        raise ExplorerError("no source of blocks is set")
    try:
        yield sources
    finally:
        sources.close()
        sources.note(db, settings, now())


def _above(network: Network, base: Block, top: int, now: Clock, one: BlockSource) -> list[Header]:
    """All headers of a source's chain above `base`, proven. Raises FetchError, ProofFailed."""
    below = parse_header(bytes(base.header))
    raws = chain.from_iterable(one.headers_after([Known(base.height, base.hash)]))
    headers = check_headers(
        network,
        raws,
        below,
        base.height,
        lambda height: check_header(network, one.header_at(height)),
    )
    shown = base.height + len(headers)
    if shown < top - MAX_BLOCKS_BEHIND:
        raise FetchError(f"shows {shown} blocks, and {top} were known")
    if network.stands_still(from_unix_s([below, *headers][-1].time), now()):
        raise FetchError(f"shows no block that is newer than {shown}, which is old")
    return headers


def _paid_in(sources: Pool[BlockSource], scripts: Collection[bytes], hash: str) -> set[bytes]:
    block = sources.ask(lambda one: prove_block(one.raw_block(hash), hash), by_turns=True)
    return {script for script in block.parts.paid if script in scripts}
