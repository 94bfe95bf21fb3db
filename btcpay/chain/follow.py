"""Follows the best chain: the one with the most work, header by header."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from btcpay.bitcoin.header import Header, parse_header
from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.headers import ShownHeader
from btcpay.chain.explorers.pool import FAILURES, MAX_BLOCKS_BEHIND, Explorers
from btcpay.chain.headers import check_header, check_headers, work_of
from btcpay.chain.kept import add_header, header_of
from btcpay.values.errors import FetchError, ProofFailed
from btcpay.values.networks import Network
from storage.database import Database, Row
from storage.queries import blocks, meta

log = logging.getLogger(__name__)

PAGES_AT_MOST = 2016  # of ten headers and more: whoever shows more is leading us nowhere

# Undoes what was in the blocks above this height; called in the transaction that leaves them.
Undo = Callable[[int], None]
# Whoever is asked: one explorer, or all in turn.
Ask = Callable[[Callable[[Esplora], "Branch | None"]], "Branch | None"]


@dataclass(frozen=True)
class Branch:
    """Headers that follow the block at `fork_height`, oldest first, and the tip that was told.

    `told_by` it was, and nobody else need have such a tip.
    """

    fork_height: int
    headers: Sequence[bytes]
    tip_height: int
    told_by: Esplora | None = None


class Follower:
    """Keeps the chain in step with the explorers'."""

    def __init__(self, db: Database, network: Network, explorers: Explorers, undo: Undo) -> None:
        self._db, self._network, self._explorers, self._undo = db, network, explorers, undo

    def follow(self) -> bool:
        """Asks for the tip, and takes over every header of a chain that has more work than ours.

        There must be a first header. Returns whether the chain has changed. Raises ExplorerError;
        what was taken over by then stays.
        """
        changed = self._take_over(self._explorers.ask)
        self._explorers.expect(self._top()["height"])
        return changed

    def _take_over(self, ask: Ask) -> bool:
        branch, changed = ask(self._news), False
        while branch:
            changed = self._adopt(branch) or changed
            if self._top()["height"] >= branch.tip_height:
                break
            branch = ask(partial(self._more, before=branch))
        return changed

    def _more(self, one: Esplora, before: Branch) -> Branch | None:
        """What comes after a branch that was taken over; another explorer is asked from its tip."""
        if one is before.told_by:
            return self._branch(one, before.tip_height)
        return self._news(one)

    def compare(self, one: Esplora) -> str:
        """Why another explorer's tip says that ours may not be the best; empty when it does not.

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
        try:
            if self._take_over(lambda question: question(one)):
                self._explorers.prefer(one)
        except FAILURES as error:
            one.failed(error)
            return f"{one.host} shows {ahead} blocks more, which cannot be read: {error}"
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
            self._refuse_lag(behind["height"])
            one.is_fresh = True
            return None
        raw = one.header(tip_hash)
        if check_header(self._network, raw).previous == top["hash"]:
            one.is_fresh = True
            return self._checked(one, Branch(top["height"], [raw], top["height"] + 1, one))
        page = self._page(one, None)
        return self._branch(one, page[-1].height, page)

    def _page(self, one: Esplora, height: int | None) -> list[ShownHeader]:
        """Each with its work, so that nobody leads us on for nothing."""
        page = one.headers(height)
        for shown in page:
            check_header(self._network, shown.raw)
        return page

    def _refuse_lag(self, height: int) -> None:
        """Raises FetchError for an explorer whose tip, at this height, is too far below ours."""
        lag = self._top()["height"] - height
        if lag > MAX_BLOCKS_BEHIND:
            raise FetchError(f"is {lag} blocks behind what was proven to us")

    def _branch(
        self, one: Esplora, tip_height: int, newest: Sequence[ShownHeader] = ()
    ) -> Branch | None:
        """The headers above the last block that both chains have, with more work than ours."""
        top = self._top()["height"]
        page = list(newest)
        if not page or page[0].height > top + 1:
            page = self._page(one, min(top + 10, tip_height))
        for _ in range(PAGES_AT_MOST):
            fork = self._fork(page)
            if fork is None:
                page = self._page(one, page[0].height - 1) + page
            elif page[-1].height < tip_height and not self._is_heavier(fork, page):
                above = self._page(one, min(page[-1].height + 10, tip_height))
                page = _in_order(page + above)
            else:
                break
        else:
            raise FetchError("shows more headers than there can be")
        if not self._is_heavier(fork, page):
            self._refuse_lag(page[-1].height)
            return None
        one.is_fresh = True
        raws = [shown.raw for shown in page if shown.height > fork]
        return self._checked(one, Branch(fork, raws, tip_height, one))

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
            fork = self._db.row(blocks.AT, height=branch.fork_height)
            ours = self._db.rows(blocks.ABOVE, height=branch.fork_height)
            headers = [parse_header(raw) for raw in branch.headers]
            if not fork or fork["hash"] != headers[0].previous:
                return False
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


def _in_order(page: Sequence[ShownHeader]) -> list[ShownHeader]:
    """Each height once, ascending; pages may overlap."""
    by_height = {shown.height: shown for shown in page}
    heights = sorted(by_height)
    if heights != list(range(heights[0], heights[-1] + 1)):
        raise ProofFailed("the headers have holes between them")
    return [by_height[height] for height in heights]
