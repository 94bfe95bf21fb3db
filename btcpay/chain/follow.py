"""Follows the best chain: the one with the most work, header by header."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from btcpay.bitcoin.header import Header, parse_header
from btcpay.chain.headers import check_header, check_headers, work_of
from btcpay.errors import ProofFailed
from btcpay.explorers.esplora import Esplora, brief
from btcpay.explorers.headers import ShownHeader
from btcpay.explorers.pool import FAILURES, MAX_BLOCKS_BEHIND, Explorers
from btcpay.http_client import FetchError
from btcpay.networks import Network
from btcpay.times import from_unix_s, to_ms
from storage.database import Database, Row
from storage.queries import blocks, meta

log = logging.getLogger(__name__)

PAGES_AT_MOST = 2016  # of ten headers and more: whoever shows more is leading us nowhere

# Undoes what was in the blocks above this height; called in the transaction that leaves them.
Undo = Callable[[int], None]


@dataclass(frozen=True)
class Branch:
    """Headers that follow the block at `fork_height`, oldest first, and the tip that was told."""

    fork_height: int
    headers: Sequence[bytes]
    tip_height: int


def header_of(row: Row) -> Header:
    """The header that a row of the chain holds."""
    return parse_header(bytes(row["header"]))


class Follower:
    """Keeps the chain in step with the explorers'."""

    def __init__(self, db: Database, network: Network, explorers: Explorers, undo: Undo) -> None:
        self._db, self._network, self._explorers, self._undo = db, network, explorers, undo

    def follow(self) -> bool:
        """Asks for the tip, and takes over every header of a chain that has more work than ours.

        There must be a first header. Returns whether the chain has changed. Raises ExplorerError;
        what was taken over by then stays.
        """
        branch = self._explorers.ask(self._news)
        changed = False
        while branch:
            changed = self._adopt(branch) or changed
            top = self._top()["height"]
            if top >= branch.tip_height:
                break
            branch = self._explorers.ask(partial(self._branch, tip_height=branch.tip_height))
        self._explorers.expect(self._top()["height"])
        return changed

    def compare(self, one: Esplora) -> str:
        """Why another explorer's tip says that ours may not be the best; empty when it does not.

        A chain of it that has more work than ours is taken over, and it is asked first from now on.
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
        try:
            branch = self._news(one)
        except FAILURES as error:
            one.failed(error)
            return f"{one.host} shows {ahead} blocks more, which cannot be read: {brief(error)}"
        if branch and self._adopt(branch):
            self._explorers.prefer(one)
        return ""

    def _top(self) -> Row:
        return self._db.only(blocks.TOP)

    def _news(self, one: Esplora) -> Branch | None:
        """What this explorer's chain has that ours has not; None when that is nothing."""
        tip_hash, top = one.tip_hash(), self._top()
        if tip_hash == top["hash"]:
            one.is_fresh = True
            return None
        behind = self._db.row(blocks.OF_HASH, hash=tip_hash)
        if behind:
            lag = top["height"] - behind["height"]
            if lag > MAX_BLOCKS_BEHIND:
                raise FetchError(f"is {lag} blocks behind what was proven to us")
            one.is_fresh = True
            return None
        raw = one.header(tip_hash)
        if check_header(self._network, raw).previous == top["hash"]:
            one.is_fresh = True
            return self._checked(one, Branch(top["height"], [raw], top["height"] + 1))
        page = one.headers(None)
        return self._branch(one, page[-1].height, page)

    def _branch(
        self, one: Esplora, tip_height: int, newest: Sequence[ShownHeader] = ()
    ) -> Branch | None:
        """The headers above the last block that both chains have, with more work than ours."""
        top = self._top()["height"]
        page = list(newest)
        if not page or page[0].height > top + 1:
            page = one.headers(min(top + 10, tip_height))
        for _ in range(PAGES_AT_MOST):
            fork = self._fork(page)
            if fork is None:
                page = one.headers(page[0].height - 1) + page
            elif page[-1].height < tip_height and not self._is_heavier(fork, page):
                page = page + one.headers(min(page[-1].height + 10, tip_height))
                page = _in_order(page)
            else:
                break
        else:
            raise FetchError("shows more headers than there can be")
        if not self._is_heavier(fork, page):
            return None
        one.is_fresh = True
        raws = [shown.raw for shown in page if shown.height > fork]
        return self._checked(one, Branch(fork, raws, tip_height))

    def _fork(self, page: Sequence[ShownHeader]) -> int | None:
        """Height of the highest block of ours that one of these follows."""
        for shown in reversed(page):
            ours = self._db.row(blocks.AT, height=shown.height - 1)
            if ours and parse_header(shown.raw).previous == ours["hash"]:
                return ours["height"]
        first = self._db.only(blocks.FIRST)["height"]
        if page[0].height <= first + 1:
            raise FetchError(f"its chain has not our block {first}, the first that we keep")
        return None

    def _is_heavier(self, fork: int, page: Sequence[ShownHeader]) -> bool:
        theirs = [parse_header(shown.raw) for shown in page if shown.height > fork]
        ours = [header_of(row) for row in self._db.rows(blocks.ABOVE, height=fork)]
        return work_of(theirs) > work_of(ours)

    def _checked(self, one: Esplora, branch: Branch) -> Branch:
        """The branch, if each of its headers may follow the one before. Raises ProofFailed."""
        last = header_of(self._db.only(blocks.AT, height=branch.fork_height))

        def period_first(height: int) -> Header:
            if row := self._db.row(blocks.AT, height=height):
                return header_of(row)
            raw = one.header(one.block_hash(height))
            return check_header(self._network, raw)

        check_headers(self._network, branch.headers, last, branch.fork_height, period_first)
        return branch

    def _adopt(self, branch: Branch) -> bool:
        """Takes it over in one transaction, with all that follows; False when we moved on."""
        with self._db.write():
            meta.lock(self._db)
            ours = self._db.rows(blocks.ABOVE, height=branch.fork_height)
            headers = [parse_header(raw) for raw in branch.headers]
            if work_of(headers) <= work_of([header_of(row) for row in ours]):
                return False
            if ours:
                log.warning(
                    "reorganised: %d blocks above %d left the best chain",
                    len(ours),
                    branch.fork_height,
                )
                self._undo(branch.fork_height)
                self._db.run(blocks.CUT, height=branch.fork_height)
            for height, raw in enumerate(branch.headers, branch.fork_height + 1):
                add_header(self._db, height, raw)
        return True


def add_header(db: Database, height: int, raw: bytes, is_read: bool = False) -> None:
    """Adds a header to the chain. `is_read`: its block is only read when somebody names it."""
    header = parse_header(raw)
    db.run(
        blocks.ADD,
        height=height,
        hash=header.hash,
        header=raw,
        mined_at=to_ms(from_unix_s(header.time)),
        read_at=blocks.NEVER if is_read else None,
        named=0,
        spends=None,
    )


def _in_order(page: Sequence[ShownHeader]) -> list[ShownHeader]:
    """Each height once, ascending; pages may overlap."""
    by_height = {shown.height: shown for shown in page}
    heights = sorted(by_height)
    if heights != list(range(heights[0], heights[-1] + 1)):
        raise ProofFailed("the headers have holes between them")
    return [by_height[height] for height in heights]
