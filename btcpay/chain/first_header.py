"""Chooses and stores the first header of the chain that a shop follows.

Blocks up to this header are never read.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import chain, islice, pairwise
from typing import NamedTuple

from btcpay.bitcoin.header import Header
from btcpay.bitcoin.tx import coinbase_height, parse_tx
from btcpay.chain.follow import add_header
from btcpay.chain.headers import check_headers, work_of
from btcpay.chain.pool import Answers, Pool
from btcpay.chain.progress import first_needed_ms
from btcpay.chain.sources import BlockSource, fetch_proven_block
from btcpay.proofs.verify import check_header
from btcpay.values.errors import ExplorerError, FetchError, OutOfQuota, ProofFailed
from btcpay.values.networks import BlockId, Network
from btcpay.values.times import from_ms, from_unix_s, iso, to_ms
from storage.database import Database
from storage.queries import blocks, merchants, meta

log = logging.getLogger(__name__)
Clock = Callable[[], datetime]

# A block's timestamp may be wrong by up to two hours, and a payment may be mined before the first
# check.
BEFORE = timedelta(hours=2)
# If our clock is ahead, the first header is this much older than the time by the sources' clocks.
BEFORE_THEIRS = timedelta(days=1)
# Number of headers below the first one that are stored too. To follow a reorganisation, a block
# that both chains share must be stored. On a quiet test network the first header may be the tip.
BELOW = 12
# Maximum number of headers above the first one whose work is compared. An attacker cannot mine that
# many.
MOST_COMPARED = 200


class _Claim(NamedTuple):
    """The first header that a source proposes.

    Claims are compared by their fields in this order; the greatest is chosen.

    `work`: the work of the headers above the first header.
    `first_at`: the time of the first header.
    `height`: the height of the first header.
    `headers`: 80 bytes each, in ascending order; the last one is the first header.
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
    """Chooses and stores a first header if the database has none.

    Returns True if the database has a first header afterwards, and False if there is no
    merchant. `now` must return the time by the clocks of the sources once they have
    responded.

    1. Blocks are needed from the first invoice on (`first_needed_ms`), else from
       `created_ms` on, else from now on. The first header is two hours older than that.
    2. Each source proposes a header. The header with the most work above it is chosen.
       On a chain that no longer grows, there is no work above it.

    Raises ExplorerError if no source proposes a valid header. Stores its message in the
    database, except for OutOfQuota.
    """
    if db.get_or_none(blocks.TOP):
        return True
    if not db.rows(merchants.ALL):
        return False
    try:
        claims, errors = _ask_claims(db, network, sources, now, created_ms)
    except ExplorerError as error:
        if not isinstance(error, OutOfQuota):
            meta.put(db, meta.Key.NOT_BEGUN, str(error))
        raise
    _warn_if_only_one(claims, errors)
    _store_headers(db, max(claims.values()))
    return True


def _warn_if_only_one(
    claims: Mapping[BlockSource, _Claim],
    errors: Mapping[BlockSource, Exception],
) -> None:
    """Logs a warning if all sources but one failed, so that nothing confirms its claim."""
    if len(claims) > 1 or not errors:
        return
    (source,) = claims
    reasons = [f"{failed.host} {error}" for failed, error in errors.items()]
    log.warning(
        "only %s says where reading begins: %s", source.host, "; ".join(reasons)
    )


def _store_headers(db: Database, claim: _Claim) -> None:
    """Stores the headers of the claim, unless another process has stored some."""
    lowest_height = claim.height - len(claim.headers) + 1
    with db.write():
        meta.lock(db)
        meta.put(db, meta.Key.NOT_BEGUN, "")
        if db.get_or_none(blocks.TOP) is None:
            for height, raw in enumerate(claim.headers, lowest_height):
                add_header(db, height, raw, is_read=True)


def _ask_claims(
    db: Database,
    network: Network,
    sources: Pool[BlockSource],
    now: Clock,
    created_ms: int | None,
) -> Answers[BlockSource, _Claim]:
    """Returns the claim of each source, and the errors of the sources that failed.

    `created_ms` is that of `keep_first_header`. If the sources' clocks show that ours is
    ahead, each source is asked once more, for a header one day older than their time.
    Raises ExplorerError if all sources failed.
    """

    def ask(at: datetime) -> Answers[BlockSource, _Claim]:
        return sources.ask_all(lambda source: _claim(network, source, at, now))

    created_at = from_ms(first_needed_ms(db) or created_ms or to_ms(now()))
    answers = ask(created_at - BEFORE)
    # The sources have responded, so `now` returns the time by their clocks.
    our_clock_was_ahead = created_at > now()
    if our_clock_was_ahead:
        answers = ask(now() - BEFORE_THEIRS)
    return answers


def _claim(network: Network, source: BlockSource, at: datetime, now: Clock) -> _Claim:
    """Fetches a source's claim, and verifies it.

    1. If the coinbase of the first header's block contains a height (BIP34), that is the
       height which the source claims.
    2. The header after the first header is younger than `at`. Otherwise a source could
       show more work by an earlier first header.
    3. The headers after the first header obey consensus, and lead to a tip that is not
       too old.

    Raises ProofFailed if the claim is false, else FetchError.
    """
    height, raws = source.headers_before(at, BELOW)
    headers = [check_header(raw, network.max_target_bits) for raw in raws]
    for lower, higher in pairwise(headers):
        if higher.previous != lower.hash:
            raise ProofFailed("shows headers that do not form a chain")
    first = headers[-1]
    _check_height(source, first, height)
    above_first = headers_above(network, source, first, height, now, MOST_COMPARED)
    if above_first and from_unix_s(above_first[0].time) <= at:
        raise ProofFailed(
            f"shows block {height} as the last one before {iso(at)}, and is wrong"
        )
    return _Claim(
        work=work_of(above_first),
        first_at=from_unix_s(first.time),
        height=height,
        headers=raws,
    )


def _check_height(source: BlockSource, header: Header, height: int) -> None:
    """Raises ProofFailed if the coinbase of the header's block has another height (BIP34).

    Old blocks have no height in the coinbase, so they pass.
    """
    block = fetch_proven_block(source, header.hash)
    coinbase = parse_tx(block.contents.tx_without_witness(0))
    height_in_block = coinbase_height(coinbase.inputs[0].script_sig)
    is_genesis = height == 0  # its coinbase may begin with another number
    if not is_genesis and height_in_block not in (None, height):
        raise ProofFailed(f"shows block {height_in_block} as number {height}")


def headers_above(
    network: Network,
    source: BlockSource,
    below: Header,
    height: int,
    now: Clock,
    most: int | None,
) -> list[Header]:
    """Fetches the headers above `below`, and verifies them by the consensus rules.

    `below` is at `height`. Returns up to `most` headers; if `most` is None, all up to
    the source's tip. Raises ProofFailed if a header is invalid, and FetchError if the
    tip is too old.
    """
    pages = source.headers_after([BlockId(height, below.hash)])
    raws = islice(chain.from_iterable(pages), most)

    def header_at(at_height: int) -> Header:
        return check_header(source.header_at(at_height), network.max_target_bits)

    headers = check_headers(network, raws, below, height, header_at)
    newest = below
    if headers:
        newest = headers[-1]
    newest_at = from_unix_s(newest.time)
    is_tip = len(headers) != most
    if is_tip and network.stands_still(newest_at, now()):
        raise FetchError(f"shows no block that is younger than {iso(newest_at)}")
    return headers
