"""The first header that a shop keeps: two hours before its first merchant was made.

Also the payments in blocks newer than a copy of the database, for shops that can ask no address
index.
"""

import logging
from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import chain, islice, pairwise
from typing import NamedTuple

from btcpay.bitcoin.header import Header, parse_header
from btcpay.bitcoin.tx import coinbase_height, parse_tx
from btcpay.chain.follow import add_header, check_headers, work_of
from btcpay.chain.pool import Pool, open_sources
from btcpay.chain.progress import first_needed_ms
from btcpay.chain.sources import MAX_BLOCKS_BEHIND, BlockSource, fetch_proven_block
from btcpay.proofs.verify import check_header
from btcpay.settings.settings import Settings
from btcpay.values.errors import ExplorerError, FetchError, OutOfQuota, ProofFailed
from btcpay.values.networks import Known, Network
from btcpay.values.times import from_ms, from_unix_s, iso, to_ms
from storage.database import Database
from storage.queries import blocks, merchants, meta

log = logging.getLogger(__name__)
Clock = Callable[[], datetime]

# A block's time may be off by this much, and a payment may be mined before cron first runs.
BEFORE = timedelta(hours=2)
BEFORE_THEIRS = timedelta(
    days=1
)  # the sources' time, when the first invoice is younger than that
# Headers kept below it, too: after a quiet time on a test network the first one may be the tip
# itself, and a reorganisation is followed from a block that both chains share.
BELOW = 12
MOST_WALKED = 200  # headers above it: by then a forger has lost


class _Claim(NamedTuple):
    """A source's proposal: `headers` ascend to the first one, which is at `height`.

    `first_at` is that header's time, `work` the work of the headers above it.
    """

    work: int
    first_at: datetime
    height: int
    headers: list[bytes]


def keep_first_header(
    db: Database,
    network: Network,
    sources: Pool[BlockSource],
    now: Clock,
    made_ms: int | None = None,
) -> bool:
    """Keeps a first header, if there is none and the shop has a merchant; True if one is kept.

    It is two hours before the first invoice, else before `made_ms` or the present. `now` is by the
    sources' clocks, once they have answered.
    The source that shows the most work above it decides: a chain that stands still shows none.
    Raises ExplorerError, and notes its message in the database.
    """
    if db.row(blocks.TOP):
        return True
    if not db.rows(merchants.ALL):
        return False
    made_at = from_ms(first_needed_ms(db) or made_ms or to_ms(now()))

    def ask(
        at: datetime,
    ) -> tuple[dict[BlockSource, _Claim], dict[BlockSource, Exception]]:
        return sources.ask_all(lambda one: _claim(network, one, at, now))

    try:
        claims, failed = ask(made_at - BEFORE)
        if made_at > now():  # by our clock, which was ahead
            claims, failed = ask(now() - BEFORE_THEIRS)
    except ExplorerError as error:
        if not isinstance(error, OutOfQuota):
            meta.put(db, meta.Key.NOT_BEGUN, str(error))
        raise
    best, found = max(claims.items(), key=lambda claim: claim[1])
    if len(claims) == 1 and failed:
        why = "; ".join(f"{one.host} {error}" for one, error in failed.items())
        log.warning("only %s says where reading begins: %s", best.host, why)
    with db.write():
        meta.lock(db)
        meta.put(db, meta.Key.NOT_BEGUN, "")
        if db.row(blocks.TOP) is None:
            for height, raw in enumerate(
                found.headers, found.height - len(found.headers) + 1
            ):
                add_header(db, height, raw, is_read=True)
    return True


def _claim(network: Network, one: BlockSource, at: datetime, now: Clock) -> _Claim:
    """A source's proposal, checked. Raises FetchError, and ProofFailed for a false one.

    1. The block of the first header says its own number (BIP34).
    2. The header above it is younger than `at`: an earlier beginning would show more work.
    3. The headers above it, as consensus prescribes them, lead to a tip that is not too old.
    """
    height, headers = one.headers_before(at, BELOW)
    kept = [check_header(raw, network.max_target_bits) for raw in headers]
    if any(above.previous != below.hash for below, above in pairwise(kept)):
        raise ProofFailed("shows headers that do not form a chain")
    first = kept[-1]
    coinbase = fetch_proven_block(one, first.hash).contents.tx_without_witness(0)
    said = coinbase_height(parse_tx(coinbase).inputs[0].script_sig)
    if height and said not in (None, height):
        raise ProofFailed(f"shows block {said} as number {height}")
    walked = headers_above(network, one, first, height, now, MOST_WALKED)
    if walked and from_unix_s(walked[0].time) <= at:
        raise ProofFailed(
            f"shows block {height} as the last one before {iso(at)}, and is wrong"
        )
    return _Claim(work_of(walked), from_unix_s(first.time), height, headers)


def headers_above(
    network: Network,
    one: BlockSource,
    below: Header,
    height: int,
    now: Clock,
    most: int | None,
) -> list[Header]:
    """The headers above `below`, which is at `height`, as consensus prescribes them.

    Up to a source's tip, or `most` of them. Raises ProofFailed, and FetchError for an old tip.
    """
    raws = islice(
        chain.from_iterable(one.headers_after([Known(height, below.hash)])), most
    )

    def period_first(at: int) -> Header:
        return check_header(one.header_at(at), network.max_target_bits)

    headers = check_headers(network, raws, below, height, period_first)
    newest_at = from_unix_s([below, *headers][-1].time)
    if len(headers) != most and network.stands_still(newest_at, now()):
        raise FetchError(f"shows no block that is younger than {iso(newest_at)}")
    return headers


def scripts_paid_since(
    db: Database, settings: Settings, now: Clock, scripts: Set[bytes], is_copy: bool
) -> set[bytes]:
    """The scripts among these that are paid by blocks newer than the database's newest.

    Of a database that is no copy, by those newer than its last invoice: a check may have read
    blocks since the database was put back. Sources whose time for a run is used up are asked anew.
    Raises ExplorerError.
    """
    with _asked(db, settings, now) as sources:
        hashes = [header.hash for header in _newer(db, settings, now, sources, is_copy)]
    found = set[bytes]()
    done = 0
    while done < len(hashes):
        before = done
        with (
            _asked(db, settings, now) as sources,
            ThreadPoolExecutor(sources.concurrency) as threads,
        ):

            def paid_by(hash: str, sources: Pool[BlockSource] = sources) -> Set[bytes]:
                block = sources.ask(lambda one: fetch_proven_block(one, hash), True)
                return block.contents.outputs_by_script.keys() & scripts

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
    db: Database,
    settings: Settings,
    now: Clock,
    sources: Pool[BlockSource],
    is_copy: bool,
) -> list[Header]:
    """The headers of the blocks to read, from the chain that shows the most work."""
    network = settings.network
    made_ms = min(row.created_at for row in db.rows(merchants.ALL))
    keep_first_header(db, network, sources, now, made_ms)
    top = db.only(blocks.TOP).height
    height = db.only(blocks.FIRST).height
    since = from_ms(db.only(blocks.LAST_INVOICE)[0] or made_ms) - BEFORE
    known = db.row(
        blocks.TOP if is_copy else blocks.LAST_BEFORE, mined_before=to_ms(since)
    )
    base = db.only(
        blocks.AT, height=max(height, min(top, known.height) - BELOW if known else 0)
    )
    below = parse_header(bytes(base.header))

    def above(one: BlockSource) -> list[Header]:
        headers = headers_above(network, one, below, base.height, now, None)
        if (shown := base.height + len(headers)) < top - MAX_BLOCKS_BEHIND:
            raise FetchError(f"shows {shown} blocks, and {top} were known")
        return headers

    headers = max(sources.ask_all(above)[0].values(), key=work_of)
    log.info("%d blocks are read, from %d on", len(headers), base.height + 1)
    return headers
