"""All explorers as one: when one fails the next is asked; what nobody knows is never guessed."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.quota import UNLIMITED, Allowance, Quota, QuotaSpent
from btcpay.chain.sources import (
    FAILURES,
    MAX_BLOCKS_BEHIND,
    AddressIndex,
    BlockSource,
    BlockSources,
    Mempool,
)
from btcpay.http import http_client
from btcpay.http.clock_skew import ClockSkew
from btcpay.values.errors import BadStatus, ExplorerError, FetchError, OutOfQuota
from btcpay.values.networks import Network

log = logging.getLogger(__name__)
T = TypeVar("T")

TRIES = 2  # of one question at one explorer: a kept connection may just have been closed


class Explorers(BlockSources, AddressIndex):
    """Several explorers, asked in order of preference. Thread safe.

    One that failed goes to the back of the line, so that a run does not wait for it at every
    address. `pause` waits so many seconds. `clock_skew` has the times in their answers.
    """

    def __init__(
        self,
        network: Network,
        urls: Sequence[str],
        session: http_client.Session,
        quota: Quota | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.clock_skew = ClockSkew()
        turn, on_headers = http_client.Turn(), self.clock_skew.on_headers
        self._line = [Esplora(network, url, session, quota, on_headers, turn) for url in urls]
        self._quota, self._pause = quota, pause
        self._lock = threading.Lock()
        self._least_height = 0

    def ask(self, question: Callable[[Esplora], T]) -> T:
        """What `question` makes of the first explorer that answers all of it.

        FetchError and ProofFailed turn it to the next one; after a failure that may pass each is
        asked twice. Raises ExplorerError, and OutOfQuota when all that is missing is calls.
        """
        tries: Counter[Esplora] = Counter()
        errors: dict[Esplora, Exception] = {}
        while explorer := self._next(tries):
            try:
                self._refuse_stale(explorer)
                answer = question(explorer)
            except FAILURES as error:
                tries[explorer] += 1 if explorer.failed(error) else TRIES
                errors[explorer] = error
                self._note_failure(explorer, error)
            else:
                explorer.succeeded()
                return answer
        raise self._nobody(errors)

    def waiting(self, address: str, script: bytes) -> Mempool:
        return self.ask(lambda one: one.waiting(address, script))

    def is_used(self, address: str) -> bool:
        return self.ask(lambda one: one.is_used(address))

    def expect(self, height: int, one: BlockSource) -> None:
        """From now on asks only explorers whose tip is at most two blocks below; `one` has it.

        The mempool of one that is behind shows neither what came since nor what has left it.
        """
        self._least_height = height - MAX_BLOCKS_BEHIND
        for explorer in self._line:
            explorer.is_fresh = explorer.is_fresh or explorer is one

    def require_chain(self, known_height: int) -> int:
        """From now on asks only explorers that know a block near the tip of our network's chain.

        One that is behind would not show what has been paid since.
        """
        found, height = self.ask(lambda one: (one, one.require_chain(known_height)))
        self.expect(height, found)
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
        """What was asked and what failed: (name, host, total)."""
        for explorer in self._line:
            yield "explorer_calls", explorer.host, explorer.calls
            yield "explorer_failures", explorer.host, explorer.failures

    def allowance(self) -> Allowance:
        if self._quota is None:
            return UNLIMITED
        return self._quota.allowance([explorer.name for explorer in self._line])

    def close(self) -> None:
        """At the end of a run: gives back what was counted and not asked."""
        for explorer in self._line:
            explorer.close()
        if self._quota:
            self._quota.give_back()

    def others(self, known: BlockSource | None = None) -> list[Esplora]:
        with self._lock:
            known = known or self._line[0]
            return [one for one in self._line if one is not known and not one.given_up]

    @property
    def is_alone(self) -> bool:
        return len(self._line) == 1

    def prefer(self, one: BlockSource) -> None:
        with self._lock:
            self._line.sort(key=lambda explorer: explorer is not one)

    def _next(self, tries: Counter[Esplora]) -> Esplora | None:
        """Whom to ask: the least tried, then those that need no pause, in their order."""
        with self._lock:
            left = [one for one in self._line if not one.given_up and tries[one] < TRIES]
        if not left:
            return None
        explorer = min(left, key=lambda one: (tries[one], one.pause_s() > 0))
        if pause_s := explorer.pause_s():
            self._pause(pause_s)
        return explorer

    def _refuse_stale(self, explorer: Esplora) -> None:
        if self._least_height <= 0 or explorer.is_fresh:
            return
        behind = self._least_height + MAX_BLOCKS_BEHIND - explorer.tip_height()
        if behind > MAX_BLOCKS_BEHIND:
            raise FetchError(f"is {behind} blocks behind the others")
        explorer.is_fresh = True

    def _note_failure(self, explorer: Esplora, error: Exception) -> None:
        if isinstance(error, QuotaSpent):
            return
        # The host alone: a URL may carry credentials.
        log.warning("explorer %s %s", explorer.host, error)
        if not (isinstance(error, BadStatus) and error.status in (400, 404)):
            with self._lock:
                self._line.remove(explorer)
                self._line.append(explorer)

    def _nobody(self, errors: dict[Esplora, Exception]) -> ExplorerError:
        if all(one.is_spent or isinstance(errors.get(one), QuotaSpent) for one in self._line):
            return OutOfQuota("the budget of every explorer is spent for now")
        said = (f"{one.host} {errors.get(one, one.given_up)}" for one in self._line)
        return ExplorerError("no explorer answered: " + "; ".join(said))
