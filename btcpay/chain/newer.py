"""Payments in blocks newer than a copy of the database, for shops that can ask no address index."""

import logging
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from btcpay.bitcoin.header import Header, parse_header
from btcpay.chain.begin import BEFORE, BELOW, Clock, begin, headers_above
from btcpay.chain.follow import work_of
from btcpay.chain.pool import Pool, open_sources
from btcpay.chain.sources import MAX_BLOCKS_BEHIND, BlockSource, proven_block
from btcpay.settings.settings import Settings
from btcpay.values.errors import ExplorerError, FetchError
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.queries import blocks, merchants

log = logging.getLogger(__name__)


def paid_since(
    db: Database, settings: Settings, now: Clock, scripts: Set[bytes], is_copy: bool
) -> set[bytes]:
    """The scripts among these that are paid by blocks newer than the database's newest.

    Of a database that is no copy, by those newer than its last invoice: a check may have read
    blocks since the database was put back. Sources whose time for a run is used up are asked anew.
    Raises ExplorerError.
    """
    with _asked(db, settings, now) as sources:
        hashes = [header.hash for header in _newer(db, settings, now, sources, is_copy)]
    found, done = set[bytes](), 0
    while done < len(hashes):
        before = done
        with _asked(db, settings, now) as sources, ThreadPoolExecutor(sources.at_once) as threads:

            def paid_by(hash: str, sources: Pool[BlockSource] = sources) -> Set[bytes]:
                block = sources.ask(lambda one: proven_block(one, hash), True)
                return block.parts.paid.keys() & scripts

            try:
                for paid in threads.map(paid_by, hashes[done:]):
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


def _newer(
    db: Database, settings: Settings, now: Clock, sources: Pool[BlockSource], is_copy: bool
) -> list[Header]:
    """The headers of the blocks to read, from the chain that shows the most work."""
    network, made_ms = settings.network, min(row.created_at for row in db.rows(merchants.ALL))
    begin(db, network, sources, now, made_ms)
    top, height = db.only(blocks.TOP).height, db.only(blocks.FIRST).height
    since = from_ms(db.only(blocks.LAST_INVOICE)[0] or made_ms) - BEFORE
    known = db.row(blocks.TOP if is_copy else blocks.LAST_BEFORE, mined_before=to_ms(since))
    base = db.only(blocks.AT, height=max(height, min(top, known.height) - BELOW if known else 0))
    below = parse_header(bytes(base.header))

    def above(one: BlockSource) -> list[Header]:
        headers = headers_above(network, one, below, base.height, now, None)
        if (shown := base.height + len(headers)) < top - MAX_BLOCKS_BEHIND:
            raise FetchError(f"shows {shown} blocks, and {top} were known")
        return headers

    headers = max(sources.ask_all(above)[0].values(), key=work_of)
    log.info("%d blocks are read, from %d on", len(headers), base.height + 1)
    return headers
