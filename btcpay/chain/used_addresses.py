"""Searches an account for used addresses (BIP44, "account discovery").

A restore searches for addresses that were given out after the backup. A new merchant
may have an account that a wallet or another shop has used before.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

from btcpay.values.errors import ExplorerError

# After this many unused addresses in a row, no further used one is expected. BIP44 says
# 20, but a crawler that clicks a payment link's button makes many unpaid invoices.
LOOK_AHEAD = 100
# The maximum number of used addresses of one account. It stops the search if an
# explorer reports every address as used.
MOST_USED = 100_000
# Number of parallel requests, as many as a check makes.
AT_ONCE = 4
# Number of addresses after which the progress is reported.
GROUP = 20


@dataclass
class AddressSearch:
    """A search for used addresses of an account, from the index `start` on.

    The search is complete after `run` unused addresses in a row, but it may end early.
    `used` are the used indexes found so far, ascending. Every index from `start` to
    `position` - 1 was looked up.
    """

    start: int
    run: int = LOOK_AHEAD
    used: list[int] = field(default_factory=list)
    position: int = field(init=False)

    def __post_init__(self) -> None:
        self.position = self.start

    @property
    def first_unused(self) -> int:
        """The index after the last used one; `start` if none is used."""
        if self.used:
            return self.used[-1] + 1
        return self.start

    @property
    def is_complete(self) -> bool:
        """True if enough addresses in a row are unused."""
        return self.position >= self.first_unused + self.run

    def find(
        self,
        is_used: Callable[[int], bool],
        on_progress: Callable[["AddressSearch"], None] = lambda _search: None,
    ) -> None:
        """Looks up addresses, several at once, until enough in a row are unused.

        `is_used` says whether the address at an index is used. `on_progress` is called
        with this search after each group of GROUP addresses.

        Raises the ExplorerError of `is_used`. The search keeps its progress, so that
        `find` can be called again.
        """
        with ThreadPoolExecutor(AT_ONCE) as threads:
            while not self.is_complete:
                end = min(self.position + GROUP, self.first_unused + self.run)
                group = range(self.position, end)
                answers = threads.map(is_used, group)
                for index, index_is_used in zip(group, answers, strict=True):
                    self._note(index, index_is_used)
                on_progress(self)

    def _note(self, index: int, is_used: bool) -> None:
        if is_used:
            self.used.append(index)
        if len(self.used) > MOST_USED:
            raise ExplorerError("the explorers say that every address is used")
        self.position = index + 1

    def gap_limit_for(self, next_index: int) -> int:
        """Returns the gap limit that a wallet needs to find all used addresses.

        With this gap limit the wallet also finds the address at `next_index`. The gap
        limit is the longest gap between these addresses. The gap before the first of
        them counts only if the search began at 0 or found no used address; otherwise
        addresses below `start` may be used.
        """
        indexes = [*self.used, next_index]
        if self.start == 0 or not self.used:
            before_first = -1
            indexes.insert(0, before_first)
        return max(after - before for before, after in pairwise(indexes))
