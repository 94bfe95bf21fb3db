"""All explorers as one: when one fails or is slow the next is asked; nothing is ever guessed."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TypeVar

from btcpay.chain.explorers.endpoint import TimeSpent
from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.line import Line
from btcpay.chain.explorers.quota import UNLIMITED, Allowance, Quota, QuotaSpent
from btcpay.chain.sources import (
    MAX_BLOCKS_BEHIND,
    AddressIndex,
    BlockSource,
    BlockSources,
    Mempool,
)
from btcpay.http import http_client
from btcpay.http.clock_skew import ClockSkew
from btcpay.values.errors import ExplorerError, FetchError, OutOfQuota
from btcpay.values.networks import Network

T = TypeVar("T")

HEDGE_S = 2.0  # without an answer, then the next explorer is asked too
# After an answer without news, when all are asked at once: the others may know of a block.
LATE_S = 10.0


class Explorers(BlockSources, AddressIndex):
    """Several explorers, asked in order of preference. Thread safe.

    One that failed or was slow goes to the back of the line, so that a run does not wait for it at
    every address. `pause` waits so many seconds. `clock_skew` has the times in their answers.
    """

    hedge_s, late_s = HEDGE_S, LATE_S

    def __init__(
        self,
        network: Network,
        urls: Sequence[str],
        session: http_client.Session,
        quota: Quota | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.clock_skew = ClockSkew()
        on_headers = self.clock_skew.on_headers
        line = [Esplora(network, url, session, quota, on_headers) for url in urls]
        # The connection with which a thread's calls were counted.
        self._line = Line(line, self._be_ready, quota.db.close if quota else lambda: None)
        self._quota, self._pause = quota, pause
        self._told = Counter[tuple[str, str]]()
        self._least_height = 0

    def ask(self, question: Callable[[Esplora], T]) -> T:
        """What `question` makes of the first explorer that answers all of it.

        FetchError, ProofFailed and slowness turn it to the next one. Raises ExplorerError, and
        OutOfQuota when all that is missing is calls or time.
        """
        errors: dict[BlockSource, Exception] = {}
        with closing(self._line.answers(question, errors, self.hedge_s)) as answers:
            for _, answer in answers:
                return answer
        raise self._nobody(errors)

    def ask_all(
        self, question: Callable[[Esplora], T], has_news: Callable[[], bool]
    ) -> tuple[dict[BlockSource, T], dict[BlockSource, Exception]]:
        """What it makes of each explorer, all asked at once, and why others have not answered.

        After an answer the others have some seconds more, but fewer when it was news. Raises
        ExplorerError when nobody has answered.
        """
        found: dict[BlockSource, T] = {}
        errors: dict[BlockSource, Exception] = {}

        def patience_s() -> float:
            return self.hedge_s if has_news() else self.late_s

        found.update(self._line.answers(question, errors, 0, patience_s))
        if not found:
            raise self._nobody(errors)
        return found, errors

    def waiting(self, address: str, script: bytes) -> Mempool:
        return self.ask(lambda one: one.waiting(address, script))

    def is_used(self, address: str) -> bool:
        return self.ask(lambda one: one.is_used(address))

    def expect(self, height: int, heights: Mapping[BlockSource, int]) -> None:
        """From now on asks only explorers whose tip is at most two blocks below, the highest first.

        `heights` has the tips that were shown in this run. The mempool of one that is behind shows
        neither what came since nor what has left it.
        """
        self._least_height = height - MAX_BLOCKS_BEHIND
        for one in self._line:
            one.is_fresh = heights.get(one, -1) >= self._least_height
        self._line.sort(lambda one: heights.get(one, -1) < height)

    def require_chain(self, known_height: int) -> int:
        """From now on asks only explorers that know a block near the tip of our network's chain.

        One that is behind would not show what has been paid since.
        """
        found, height = self.ask(lambda one: (one, one.require_chain(known_height)))
        self.expect(height, {found: height})
        return height

    @property
    def calls(self) -> int:
        """Requests made so far, failed ones too."""
        return sum(explorer.calls for explorer in self._line)

    @property
    def bytes_read(self) -> int:
        """The bodies of the answers so far, those that broke off too."""
        return sum(explorer.bytes_read for explorer in self._line)

    def tallies(self) -> Iterator[tuple[str, str, int]]:
        """What was asked and what failed since it was last told: (name, host, total)."""
        for one in self._line:
            for name, total in ("explorer_calls", one.calls), ("explorer_failures", one.failures):
                yield name, one.host, total - self._told[name, one.name]
                self._told[name, one.name] = total

    def allowance(self) -> Allowance:
        if self._quota is None:
            return UNLIMITED
        return self._quota.allowance([explorer.name for explorer in self._line])

    def end_within(self, seconds: float) -> None:
        """After so many nobody is asked any more."""
        for explorer in self._line:
            explorer.until_s = time.monotonic() + seconds

    def close(self) -> None:
        """At the end of a run: gives back what was counted and not asked."""
        for explorer in self._line:
            explorer.close()
        if self._quota:
            self._quota.give_back()

    def others(self, known: BlockSource | None = None) -> list[Esplora]:
        line = list(self._line)
        return [one for one in line if one is not (known or line[0]) and not one.given_up]

    @property
    def is_alone(self) -> bool:
        return len(list(self._line)) == 1

    def _be_ready(self, explorer: Esplora) -> None:
        """Waits until it may be asked. Raises FetchError for one that is behind."""
        if pause_s := explorer.pause_s():
            self._pause(pause_s)
        if self._least_height <= 0 or explorer.is_fresh:
            return
        behind = self._least_height + MAX_BLOCKS_BEHIND - explorer.tip_height()
        if behind > MAX_BLOCKS_BEHIND:
            raise FetchError(f"is {behind} blocks behind the others")
        explorer.is_fresh = True

    def _nobody(self, errors: dict[BlockSource, Exception]) -> ExplorerError:
        if all(one.is_spent or isinstance(errors.get(one), QuotaSpent) for one in self._line):
            return OutOfQuota("the budget of every explorer is spent for now")
        if any(isinstance(error, TimeSpent) for error in errors.values()):
            return OutOfQuota("the time that a run gives to an explorer is spent")
        said = (f"{one.host} {errors.get(one, one.given_up)}" for one in self._line)
        return ExplorerError("no explorer answered: " + "; ".join(said))
