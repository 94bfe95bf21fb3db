"""Follows the best chain: the one with the most work, header by header."""

import logging
from collections.abc import Callable, Sequence

from btcpay.bitcoin.header import Header, parse_header
from btcpay.chain.headers import check_header, check_headers, work_of
from btcpay.chain.sources import FAILURES, MAX_BLOCKS_BEHIND, BlockSource, BlockSources, Known
from btcpay.values.errors import FetchError
from btcpay.values.networks import Network
from btcpay.values.times import from_unix_s, to_ms
from storage.database import Database, Row
from storage.queries import blocks, meta

log = logging.getLogger(__name__)

IN_A_ROW = 10  # of a locator, before its gaps begin and double: deeper forks are rare

# Undoes what was in the blocks above this height; called in the transaction that leaves them.
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


def _header_of(row: Row) -> Header:
    return parse_header(bytes(row["header"]))


class Follower:
    def __init__(self, db: Database, network: Network, sources: BlockSources, undo: Undo) -> None:
        self._db, self._network, self._sources, self._undo = db, network, sources, undo

    def follow(self) -> bool:
        """Takes over every header of a chain with more work than ours; whether ours has changed.

        There must be a first header. Raises ExplorerError; what was taken over by then stays.
        """
        before = self._top()["hash"]
        one = self._sources.ask(self._take_over)
        self._sources.expect(self._top()["height"], one)
        return self._top()["hash"] != before

    def compare(self, one: BlockSource) -> str:
        """Why another source's tip says that ours may not be the best; empty when it does not.

        A chain of it that has more work than ours is taken over up to its tip, and it is asked
        first from now on.
        """
        try:
            ahead = one.tip_height() - self._top()["height"]
        except FAILURES as error:
            one.failed(error)
            return ""
        if ahead < -MAX_BLOCKS_BEHIND:
            log.warning("%s is %d blocks behind", one.host, -ahead)
        if ahead <= MAX_BLOCKS_BEHIND:
            return ""
        before = self._top()["hash"]
        try:
            self._take_over(one)
        except FAILURES as error:
            one.failed(error)
            return f"{one.host} shows {ahead} blocks more, which cannot be read: {error}"
        if self._top()["hash"] != before:
            self._sources.prefer(one)
        return ""

    def _top(self) -> Row:
        return self._db.only(blocks.TOP)

    def _locator(self) -> list[Known]:
        top, first = self._top()["height"], self._db.only(blocks.FIRST)["height"]
        heights, gap = [top], 1
        while heights[-1] > first:
            heights.append(max(first, heights[-1] - gap))
            gap *= 1 if len(heights) <= IN_A_ROW else 2
        return [Known(height, self._at(height)["hash"]) for height in heights]

    def _at(self, height: int) -> Row:
        return self._db.only(blocks.AT, height=height)

    def _take_over(self, one: BlockSource) -> BlockSource:
        """Takes over what it shows as soon as that has more work than ours; the source.

        Raises FetchError for one whose chain ends too far below ours.
        """
        branch: list[bytes] = []
        newest = top = self._top()["height"]
        for raws in one.headers_after(self._locator()):
            for raw in raws:
                check_header(self._network, raw)
            branch += raws
            while branch and (ours := self._ours(parse_header(branch[0]).hash)):
                newest = ours["height"]
                del branch[0]
            if not branch:
                continue
            below = self._ours(parse_header(branch[0]).previous)
            if below is None:
                raise FetchError("shows headers that follow no block of ours")
            fork = below["height"]
            newest = fork + len(branch)
            if self._is_heavier(fork, branch):
                self._check(one, fork, branch)
                self._adopt(fork, branch)
                branch, top = [], newest
        if top - newest > MAX_BLOCKS_BEHIND:
            raise FetchError(f"is {top - newest} blocks behind what was proven to us")
        return one

    def _ours(self, hash: str) -> Row | None:
        return self._db.row(blocks.OF_HASH, hash=hash)

    def _is_heavier(self, fork: int, branch: Sequence[bytes]) -> bool:
        ours = [_header_of(row) for row in self._db.rows(blocks.ABOVE, height=fork)]
        return work_of([parse_header(raw) for raw in branch]) > work_of(ours)

    def _check(self, one: BlockSource, fork: int, branch: Sequence[bytes]) -> None:
        """Raises ProofFailed unless each header may follow the one before."""

        def period_first(height: int) -> Header:
            row = self._db.row(blocks.AT, height=height)
            return _header_of(row) if row else check_header(self._network, one.header_at(height))

        check_headers(self._network, branch, _header_of(self._at(fork)), fork, period_first)

    def _adopt(self, fork: int, branch: Sequence[bytes]) -> None:
        """Takes it over in one transaction, with all that follows; not when we moved on."""
        with self._db.write():
            meta.lock(self._db)
            row = self._db.row(blocks.AT, height=fork)
            follows = row and row["hash"] == parse_header(branch[0]).previous
            if not (follows and self._is_heavier(fork, branch)):
                return
            if left := len(self._db.rows(blocks.ABOVE, height=fork)):
                log.warning("reorganised: %d blocks above %d left the best chain", left, fork)
                self._undo(fork)
                self._db.run(blocks.CUT, height=fork)
            for height, raw in enumerate(branch, fork + 1):
                add_header(self._db, height, raw)
