"""Follows the best chain, the one with the most work, and verifies each header."""

import logging
from collections.abc import Callable, Sequence

from btcpay.bitcoin.header import Header, parse_header
from btcpay.chain.headers import check_headers, work_of
from btcpay.chain.pool import Answers, Pool
from btcpay.chain.sources import (
    FAILURES,
    MAX_BLOCKS_BEHIND,
    BlockSource,
    SourceExcluded,
)
from btcpay.proofs.verify import check_header
from btcpay.values.errors import FetchError, Unreachable
from btcpay.values.networks import BlockId, Network
from btcpay.values.times import from_unix_s, to_ms
from storage.database import Database
from storage.models import Block
from storage.queries import blocks, meta

log = logging.getLogger(__name__)

# Reverts the effects of all blocks above a height, in the database transaction that deletes their
# headers.
Undo = Callable[[int], None]

# A locator has this many newest blocks without gaps, since deeper forks are rare. Below them each
# gap is twice the one before.
WITHOUT_GAPS = 10


def add_header(db: Database, height: int, raw: bytes, is_read: bool = False) -> None:
    """Adds a header to the stored chain.

    `raw` has 80 bytes. If `is_read` is true, the header's block is marked as read, so
    that no check ever reads it.
    """
    header = parse_header(raw)
    read_ms = None
    if is_read:
        read_ms = blocks.NEVER
    db.run(
        blocks.ADD,
        height=height,
        hash=header.hash,
        header=raw,
        mined_ms=to_ms(from_unix_s(header.time)),
        read_ms=read_ms,
        spends=None,
        not_before=None,
    )


def _header_of(row: Block) -> Header:
    return parse_header(bytes(row.header))


class Follower:
    """Keeps the stored chain equal to the best chain of the sources.

    `is_agreed` is True if enough sources have shown a tip near the stored one: at most
    MAX_BLOCKS_BEHIND blocks below it.
    """

    def __init__(
        self,
        db: Database,
        network: Network,
        sources: Pool[BlockSource],
        undo: Undo,
    ) -> None:
        self._db = db
        self._network = network
        self._sources = sources
        self._undo = undo
        self._errors: dict[BlockSource, Exception] = {}
        self.is_agreed = False
        self._highest = 0  # highest tip of a source that has shown all headers

    def follow(self) -> bool:
        """Requests new headers from every source, and adopts the best chain.

        Returns True if the stored tip has changed. The database must have a first
        header. Raises ExplorerError if every source failed. Headers that were adopted
        before an error stay stored.
        """
        locator = self._locator()
        hash_before = locator[0].hash

        def has_news() -> bool:
            return bool(self._top().hash != hash_before)

        def patience_s() -> float:
            if has_news():
                return self._sources.hedge_s
            return self._sources.late_s  # another source may know a new block

        def adopt_from(source: BlockSource) -> int:
            return self._adopt_from(source, locator)

        answers = self._sources.ask_all(adopt_from, patience_s)
        self._note_tips(answers)
        return has_news()

    def _note_tips(self, answers: Answers[BlockSource, int]) -> None:
        """Compares the heights of the sources' tips with that of the stored one.

        From then on the pool sends no requests to sources that are far behind.
        """
        heights = answers.results
        self._errors = answers.errors
        self._highest = max(heights.values())
        our_height = self._top().height
        lowest_near = our_height - MAX_BLOCKS_BEHIND
        near = [height for height in heights.values() if height >= lowest_near]
        self.is_agreed = len(near) >= self._sources.quorum
        self._sources.expect(our_height, heights)

    def unread_blocks_elsewhere(self, is_quiet: bool) -> str:
        """Returns a message about a failed source that may know more blocks than we; "" if none.

        A failed source may know more in two cases:

        1. No other source has a tip as high as the stored one. So the failed source probably
           has shown the highest headers before its error.
        2. No block has come for a long time (`is_quiet`), and the failed source claims a tip
           more than MAX_BLOCKS_BEHIND above the stored one.
        """
        our_height = self._top().height
        do_others_know_top = self._highest >= our_height
        for source, error in self._errors.items():
            if isinstance(error, SourceExcluded):
                continue
            if not do_others_know_top:
                return f"{source.host} shows more blocks, which cannot be read: {error}"
            if not is_quiet or isinstance(error, Unreachable):
                continue
            try:
                ahead = source.tip_height() - our_height
            except FAILURES:
                continue
            if ahead > MAX_BLOCKS_BEHIND:
                return f"{source.host} shows {ahead} blocks more, which cannot be read: {error}"
        return ""

    def _top(self) -> Block:
        return self._db.get(blocks.TOP)

    def _locator(self) -> list[BlockId]:
        """Returns stored blocks from the newest to the first, with growing gaps."""
        first = self._db.get(blocks.FIRST).height
        height = self._top().height
        heights = [height]
        gap = 1
        while height > first:
            height = max(first, height - gap)
            heights.append(height)
            if len(heights) > WITHOUT_GAPS:
                gap *= 2
        rows = [self._db.get(blocks.AT, height=height) for height in heights]
        return [BlockId(row.height, row.hash) for row in rows]

    def _adopt_from(self, source: BlockSource, locator: Sequence[BlockId]) -> int:
        """Adopts the headers of a source if they have more work than the stored chain.

        Returns the height of the source's tip. Other threads adopt headers of other
        sources at the same time. Raises FetchError if the source's chain ends more than
        MAX_BLOCKS_BEHIND blocks below the stored tip, and ProofFailed if a header is
        invalid.
        """
        our_height = locator[0].height
        their_height = our_height
        # The headers of the source that are not stored, the lowest first.
        branch: list[bytes] = []
        for raws in source.headers_after(locator):
            for raw in raws:
                check_header(raw, self._network.max_target_bits)
            branch += raws
            shared_height = self._drop_ours(branch)
            if shared_height is not None:
                their_height = shared_height
            if not branch:
                continue
            below = self._block_below(branch)
            their_height = below.height + len(branch)
            if self._is_heavier(below.height, branch):
                self._check(source, below, branch)
                self._adopt(below.height, branch)
                branch = []
                our_height = their_height
        behind = our_height - their_height
        if behind > MAX_BLOCKS_BEHIND:
            raise FetchError(f"is {behind} blocks behind what was proven to us")
        return their_height

    def _block_below(self, branch: Sequence[bytes]) -> Block:
        """Returns the stored block that the branch builds on.

        Raises FetchError if there is none.
        """
        below = self._our_block(parse_header(branch[0]).previous)
        if below is None:
            raise FetchError("shows headers that follow no block of ours")
        return below

    def _drop_ours(self, branch: list[bytes]) -> int | None:
        """Removes the headers at the start of `branch` that are already stored.

        Returns the height of the last one that was removed; None if none was.
        """
        height = None
        while branch:
            block = self._our_block(parse_header(branch[0]).hash)
            if block is None:
                break
            height = block.height
            del branch[0]
        return height

    def _our_block(self, hash: str) -> Block | None:
        return self._db.get_or_none(blocks.OF_HASH, hash=hash)

    def _is_heavier(self, fork: int, branch: Sequence[bytes]) -> bool:
        """True if the branch has more work than the stored headers above `fork`."""
        rows = self._db.rows(blocks.ABOVE, height=fork)
        our_work = work_of(_header_of(row) for row in rows)
        return work_of(parse_header(raw) for raw in branch) > our_work

    def _check(
        self,
        source: BlockSource,
        below: Block,
        branch: Sequence[bytes],
    ) -> None:
        """Raises ProofFailed if a header of the branch is invalid by consensus.

        `below` is the stored block that the branch builds on.
        """

        def header_at(height: int) -> Header:
            row = self._db.get_or_none(blocks.AT, height=height)
            if row:
                return _header_of(row)
            raw = source.header_at(height)
            return check_header(raw, self._network.max_target_bits)

        check_headers(self._network, branch, _header_of(below), below.height, header_at)

    def _adopt(self, fork: int, branch: Sequence[bytes]) -> None:
        """Replaces the stored headers above `fork` with the branch, in one transaction.

        Does nothing if another thread has adopted a chain with at least as much work,
        or has replaced the block at `fork`.
        """
        with self._db.write():
            meta.lock(self._db)
            row = self._db.get_or_none(blocks.AT, height=fork)
            if not row or row.hash != parse_header(branch[0]).previous:
                return
            if not self._is_heavier(fork, branch):
                return
            dropped = len(self._db.rows(blocks.ABOVE, height=fork))
            if dropped:
                log.warning(
                    "reorganised: %d blocks above %d left the best chain", dropped, fork
                )
                self._undo(fork)
                self._db.run(blocks.CUT, height=fork)
            for height, raw in enumerate(branch, fork + 1):
                add_header(self._db, height, raw)
