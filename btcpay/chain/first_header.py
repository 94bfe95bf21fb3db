"""The first header that a shop keeps: two hours before its first merchant was added."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import chain, islice, pairwise
from typing import NamedTuple

from btcpay.bitcoin.header import Header
from btcpay.bitcoin.tx import coinbase_height, parse_tx
from btcpay.chain.follow import add_header
from btcpay.chain.headers import check_headers, work_of
from btcpay.chain.pool import Pool
from btcpay.chain.progress import first_needed_ms
from btcpay.chain.sources import BlockSource, fetch_proven_block
from btcpay.proofs.verify import check_header
from btcpay.values.errors import ExplorerError, FetchError, OutOfQuota, ProofFailed
from btcpay.values.networks import Known, Network
from btcpay.values.times import from_ms, from_unix_s, iso, to_ms
from storage.database import Database
from storage.queries import blocks, merchants, meta

log = logging.getLogger(__name__)
Clock = Callable[[], datetime]

# A block's time may be off by so much, and a payment may be mined before cron first runs.
BEFORE = timedelta(hours=2)
# Before the time of the sources, if the first invoice seems to be younger than that.
BEFORE_THEIRS = timedelta(days=1)
# So many headers below the first one are kept too. After a quiet time on a test network the first
# one may be the tip itself, and a reorganisation is followed from a block that both chains share.
BELOW = 12
# So many headers above it are compared: by then a forger has lost.
MOST_WALKED = 200


class _Claim(NamedTuple):
    """A source's proposal; the greatest one decides.

    `headers` ascend to the first header, which is at `height` and of the time `first_at`. `work` is
    that of the headers above it.
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
    created_ms: int | None = None,
) -> bool:
    """Keeps a first header, unless there is one or the shop has no merchant; True if one is kept.

    It is two hours before the first invoice, else before `created_ms` or the present. `now` is by
    the sources' clocks, once they have answered. The source that shows the most work above its
    header decides: a chain that stands still shows none. Raises ExplorerError, and notes its
    message in the database.
    """
    if db.row(blocks.TOP):
        return True
    if not db.rows(merchants.ALL):
        return False
    try:
        claims, errors = _ask_claims(db, network, sources, now, created_ms)
    except ExplorerError as error:
        if not isinstance(error, OutOfQuota):
            meta.put(db, meta.Key.NOT_BEGUN, str(error))
        raise
    best_source = max(claims, key=lambda source: claims[source])
    if len(claims) == 1 and errors:
        reasons = [f"{source.host} {error}" for source, error in errors.items()]
        log.warning(
            "only %s says where reading begins: %s",
            best_source.host,
            "; ".join(reasons),
        )
    best = claims[best_source]
    lowest_height = best.height - len(best.headers) + 1
    with db.write():
        meta.lock(db)
        meta.put(db, meta.Key.NOT_BEGUN, "")
        if db.row(blocks.TOP) is None:
            for height, raw in enumerate(best.headers, lowest_height):
                add_header(db, height, raw, is_read=True)
    return True


def _ask_claims(
    db: Database,
    network: Network,
    sources: Pool[BlockSource],
    now: Clock,
    created_ms: int | None,
) -> tuple[dict[BlockSource, _Claim], dict[BlockSource, Exception]]:
    """Each source's proposal, and the errors of the others. Raises ExplorerError."""

    def ask(
        at: datetime,
    ) -> tuple[dict[BlockSource, _Claim], dict[BlockSource, Exception]]:
        return sources.ask_all(lambda source: _claim(network, source, at, now))

    created_at = from_ms(first_needed_ms(db) or created_ms or to_ms(now()))
    claims, errors = ask(created_at - BEFORE)
    our_clock_was_ahead = created_at > now()
    if our_clock_was_ahead:
        claims, errors = ask(now() - BEFORE_THEIRS)
    return claims, errors


def _claim(network: Network, source: BlockSource, at: datetime, now: Clock) -> _Claim:
    """A source's proposal, checked. Raises FetchError, and ProofFailed for a false one.

    1. The block of the first header says its own number (BIP34).
    2. The header above it is younger than `at`: an earlier beginning would show more work.
    3. The headers above it, as consensus prescribes them, lead to a tip that is not too old.
    """
    height, raws = source.headers_before(at, BELOW)
    headers = [check_header(raw, network.max_target_bits) for raw in raws]
    for below, above in pairwise(headers):
        if above.previous != below.hash:
            raise ProofFailed("shows headers that do not form a chain")
    first = headers[-1]
    block = fetch_proven_block(source, first.hash)
    coinbase = parse_tx(block.contents.tx_without_witness(0))
    claimed_height = coinbase_height(coinbase.inputs[0].script_sig)
    if height and claimed_height not in (None, height):
        raise ProofFailed(f"shows block {claimed_height} as number {height}")
    walked = headers_above(network, source, first, height, now, MOST_WALKED)
    if walked and from_unix_s(walked[0].time) <= at:
        raise ProofFailed(
            f"shows block {height} as the last one before {iso(at)}, and is wrong"
        )
    return _Claim(work_of(walked), from_unix_s(first.time), height, raws)


def headers_above(
    network: Network,
    source: BlockSource,
    below: Header,
    height: int,
    now: Clock,
    most: int | None,
) -> list[Header]:
    """The headers above `below`, which is at `height`, checked as consensus prescribes them.

    They lead to the source's tip, or are `most`. Raises ProofFailed, and FetchError for an old tip.
    """
    pages = source.headers_after([Known(height, below.hash)])
    raws = islice(chain.from_iterable(pages), most)

    def header_at(at_height: int) -> Header:
        return check_header(source.header_at(at_height), network.max_target_bits)

    headers = check_headers(network, raws, below, height, header_at)
    newest = below
    if headers:
        newest = headers[-1]
    newest_at = from_unix_s(newest.time)
    if len(headers) != most and network.stands_still(newest_at, now()):
        raise FetchError(f"shows no block that is younger than {iso(newest_at)}")
    return headers
