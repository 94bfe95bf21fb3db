"""Follows the best chain: the one with the most work, header by header, each of them checked."""

import logging
from collections.abc import Callable, Iterable, Sequence

from btcpay.bitcoin.header import Header, parse_header, required_bits
from btcpay.chain.pool import Pool
from btcpay.chain.sources import (
    FAILURES,
    MAX_BLOCKS_BEHIND,
    BlockSource,
    SourceExcluded,
)
from btcpay.proofs.verify import check_header
from btcpay.values.errors import FetchError, ProofFailed, Unreachable
from btcpay.values.networks import Known, Network
from btcpay.values.times import from_unix_s, to_ms
from storage.database import Database
from storage.models import Block
from storage.queries import blocks, meta

# The header at a height of the followed chain; asked for once in a fortnight of blocks.
Lookup = Callable[[int], Header]


def check_headers(
    network: Network,
    raws: Iterable[bytes],
    last: Header,
    height: int,
    period_first: Lookup,
) -> list[Header]:
    """The headers in `raws`; the first is to follow `last`, at `height`. Raises ProofFailed."""
    headers = []
    for raw in raws:
        height += 1
        header = check_header(raw, network.max_target_bits)
        if header.previous != last.hash:
            raise ProofFailed(f"header {height} does not follow the one before it")
        if (
            network.pow_limit_bits is not None
        ):  # on a test network work is cheap, of any target
            needed = required_bits(height, last, period_first, network.pow_limit_bits)
            if header.bits != needed:
                raise ProofFailed(
                    f"header {height} has another target than consensus asks for"
                )
        headers.append(header)
        last = header
    return headers


def work_of(headers: Sequence[Header]) -> int:
    return sum(header.work for header in headers)


log = logging.getLogger(__name__)

IN_A_ROW = (
    10  # hashes of a locator before its gaps begin to double; deeper forks are rare
)

# Undoes everything in the blocks above this height, in the transaction that drops them.
Undo = Callable[[int], None]


def add_header(db: Database, height: int, raw: bytes, is_read: bool = False) -> None:
    """Adds a header to the chain that we keep. `is_read`: its block is passed over."""
    header = parse_header(raw)
    db.run(
        blocks.ADD,
        height=height,
        hash=header.hash,
        header=raw,
        mined_at=to_ms(from_unix_s(header.time)),
        read_at=blocks.NEVER if is_read else None,
        spends=None,
        not_before=None,
    )


def _header_of(row: Block) -> Header:
    return parse_header(bytes(row.header))


class Follower:
    def __init__(
        self, db: Database, network: Network, sources: Pool[BlockSource], undo: Undo
    ) -> None:
        self._db = db
        self._network = network
        self._sources = sources
        self._undo = undo
        self._failed: dict[BlockSource, Exception] = {}
        self.is_agreed = False  # enough sources show a tip that is not far below ours
        self._highest = 0  # the highest tip whose headers were all shown

    def follow(self) -> bool:
        """Adopts every header of the chain with the most work; True if ours has changed.

        Every source is asked. There must be a first header. Raises ExplorerError; the headers taken
        over by then stay.
        """
        locator = self._locator()

        def has_news() -> bool:
            return bool(self._top().hash != locator[0].hash)

        heights, self._failed = self._sources.ask_all(
            lambda one: self._take_over(one, locator),
            lambda: self._sources.hedge_s if has_news() else self._sources.late_s,
        )
        self._highest, top = max(heights.values()), self._top().height
        near = sum(height >= top - MAX_BLOCKS_BEHIND for height in heights.values())
        self.is_agreed = near >= self._sources.needed
        self._sources.expect(top, heights)
        return has_news()

    def unread_blocks_elsewhere(self, is_quiet: bool) -> str:
        """Names a source that failed and may know more blocks than we do; empty if none does.

        Its headers broke off; or, when no block has come for long, it merely says that it has more.
        """
        top = self._top().height
        for one, error in self._failed.items():
            if isinstance(error, SourceExcluded):
                continue
            if self._highest < top:
                return f"{one.host} shows more blocks, which cannot be read: {error}"
            if not is_quiet or isinstance(error, Unreachable):
                continue
            try:
                ahead = one.tip_height() - top
            except FAILURES:
                continue
            if ahead > MAX_BLOCKS_BEHIND:
                return f"{one.host} shows {ahead} blocks more, which cannot be read: {error}"
        return ""

    def _top(self) -> Block:
        return self._db.only(blocks.TOP)

    def _locator(self) -> list[Known]:
        top = self._top().height
        first = self._db.only(blocks.FIRST).height
        heights = [top]
        gap = 1
        while heights[-1] > first:
            heights.append(max(first, heights[-1] - gap))
            gap *= 1 if len(heights) <= IN_A_ROW else 2
        return [
            Known(height, self._db.only(blocks.AT, height=height).hash)
            for height in heights
        ]

    def _take_over(self, one: BlockSource, locator: Sequence[Known]) -> int:
        """Takes over a source's headers once they have more work than ours; its tip's height.

        Other sources are taken over at the same time. Raises FetchError if its chain ends too far
        below ours.
        """
        branch: list[bytes] = []
        newest = top = locator[0].height
        for raws in one.headers_after(locator):
            for raw in raws:
                check_header(raw, self._network.max_target_bits)
            branch += raws
            while branch and (ours := self._ours(parse_header(branch[0]).hash)):
                newest = ours.height
                del branch[0]
            if not branch:
                continue
            below = self._ours(parse_header(branch[0]).previous)
            if below is None:
                raise FetchError("shows headers that follow no block of ours")
            fork = below.height
            newest = fork + len(branch)
            if self._is_heavier(fork, branch):
                self._check(one, below, branch)
                self._adopt(fork, branch)
                branch = []
                top = newest
        if top - newest > MAX_BLOCKS_BEHIND:
            raise FetchError(f"is {top - newest} blocks behind what was proven to us")
        return newest

    def _ours(self, hash: str) -> Block | None:
        return self._db.row(blocks.OF_HASH, hash=hash)

    def _is_heavier(self, fork: int, branch: Sequence[bytes]) -> bool:
        ours = [_header_of(row) for row in self._db.rows(blocks.ABOVE, height=fork)]
        return work_of([parse_header(raw) for raw in branch]) > work_of(ours)

    def _check(self, one: BlockSource, below: Block, branch: Sequence[bytes]) -> None:
        """Raises ProofFailed unless each header may follow the one before, or `below`."""

        def period_first(height: int) -> Header:
            row = self._db.row(blocks.AT, height=height)
            if row:
                return _header_of(row)
            return check_header(one.header_at(height), self._network.max_target_bits)

        check_headers(
            self._network, branch, _header_of(below), below.height, period_first
        )

    def _adopt(self, fork: int, branch: Sequence[bytes]) -> None:
        """Puts the branch above `fork` in one transaction, unless our chain has moved on since."""
        with self._db.write():
            meta.lock(self._db)
            row = self._db.row(blocks.AT, height=fork)
            follows = row and row.hash == parse_header(branch[0]).previous
            if not (follows and self._is_heavier(fork, branch)):
                return
            if left := len(self._db.rows(blocks.ABOVE, height=fork)):
                log.warning(
                    "reorganised: %d blocks above %d left the best chain", left, fork
                )
                self._undo(fork)
                self._db.run(blocks.CUT, height=fork)
            for height, raw in enumerate(branch, fork + 1):
                add_header(self._db, height, raw)
