"""The explorer client: Esplora over HTTP, the next root when one fails, never a guess.

Source: Blockstream/esplora API.md; mempool.space's API documentation.
"""

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import requests
from marshmallow import ValidationError

from btcpay import http_client
from btcpay.clock_skew import Witness
from btcpay.errors import ExplorerError, OutOfBudget, ProofFailed
from btcpay.explorers.endpoint import Root
from btcpay.explorers.history import Get, read_outputs
from btcpay.explorers.quota import UNLIMITED, Budget, BudgetSpent, Purse
from btcpay.settlement.values import SeenOutput

log = logging.getLogger(__name__)
T = TypeVar("T")

TRIES = 2  # of one question at one root: a kept connection may just have been closed
MAX_BLOCKS_BEHIND = 2  # blocks come in bunches; an explorer three behind is stuck


@dataclass(frozen=True)
class History:
    """All outputs to an address, and the host of the explorer that showed them."""

    outputs: list[SeenOutput]
    explorer: str


class Explorers:
    """Several Esplora roots, asked in order of preference.

    A root that failed goes to the back of the line for as long as this value lives, so that a run
    does not wait for it at every address. Thread safe. `pause` waits so many seconds; `witness` has
    heard what time they told.
    """

    def __init__(
        self,
        roots: Sequence[str],
        session: requests.Session,
        budget: Budget | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.witness = Witness()
        turn = http_client.Turn()
        self._line = [Root(url, session, budget, self.witness.hear, turn) for url in roots]
        self._budget, self._pause = budget, pause
        self._lock = threading.Lock()
        self._last = self._line[0]
        self._least_height = 0

    @property
    def calls(self) -> int:
        """Requests made so far, failed ones too."""
        return sum(root.calls for root in self._line)

    def tallies(self) -> Iterator[tuple[str, str, int]]:
        """What was asked and what failed: (name, host, total)."""
        for root in self._line:
            yield "explorer_calls", root.host, root.calls
            yield "explorer_failures", root.host, root.failures

    def purse(self) -> Purse:
        """What may be spent on all roots together."""
        if self._budget is None:
            return UNLIMITED
        return self._budget.purse([root.name for root in self._line])

    def sweep(self, calls: int) -> None:
        """Notes that so many of this run's calls are for addresses that nobody waits for."""
        if self._budget and calls:
            self._budget.sweep(self._line[0].name, calls)

    def close(self) -> None:
        """At the end of a run: gives back what was counted and not asked."""
        for root in self._line:
            root.close()
        if self._budget:
            self._budget.give_back()

    @property
    def several(self) -> bool:
        """Whether there is another root to turn to."""
        return len(self._line) > 1

    def ask(self, question: Callable[[Root], T]) -> T:
        """What `question` makes of the first root that answers it whole.

        `question` gets a root: a function from path to body. FetchError, ValidationError and
        ProofFailed turn it to the next one; after a failure that may pass, each is asked twice.
        Raises ExplorerError when no root is left, OutOfBudget when all that is missing is budget.
        """
        tries: Counter[Root] = Counter()
        errors: dict[Root, Exception] = {}
        while root := self._next(tries):
            try:
                self._refuse_stale(root)
                answer = question(root)
            except (http_client.FetchError, ValidationError, ProofFailed) as error:
                tries[root] += 1 if root.failed(error) else TRIES
                errors[root] = error
                self._note_failure(root, error)
            else:
                root.succeeded()
                self._last = root
                return answer
        if all(r.is_spent or isinstance(errors.get(r), BudgetSpent) for r in self._line):
            raise OutOfBudget("the budget of every explorer is spent for now")
        said = [
            f"{root.host} {_brief(errors[root]) if root in errors else root.given_up}"
            for root in self._line
        ]
        raise ExplorerError("no explorer answered: " + "; ".join(said))

    def _next(self, tries: Counter[Root]) -> Root | None:
        """The root to be asked: the least tried, then those that need no pause, in their order."""
        with self._lock:
            left = [root for root in self._line if root.is_usable and tries[root] < TRIES]
        if not left:
            return None
        root = min(left, key=lambda root: (tries[root], root.pause_s() > 0))
        if pause_s := root.pause_s():
            self._pause(pause_s)
        return root

    def _note_failure(self, root: Root, error: Exception) -> None:
        if isinstance(error, BudgetSpent):
            return
        # The host alone: a root may carry credentials.
        log.warning("explorer %s %s", root.host, _brief(error))
        if not (isinstance(error, http_client.BadStatus) and error.status in (400, 404)):
            with self._lock:
                self._line.remove(root)
                self._line.append(root)

    def require(self, height: int) -> None:
        """From now on only roots that know a block near `height`, which the last one answered.

        A root that is behind would not show what has been paid since.
        """
        self._least_height = height - MAX_BLOCKS_BEHIND
        for root in self._line:
            root.is_fresh = root is self._last

    def _refuse_stale(self, root: Root) -> None:
        if self._least_height <= 0 or root.is_fresh:
            return
        behind = self._least_height + MAX_BLOCKS_BEHIND - tip_height(root)
        if behind > MAX_BLOCKS_BEHIND:
            raise http_client.FetchError(f"is {behind} blocks behind the others")
        root.is_fresh = True

    def history(self, address: str, script: bytes) -> History:
        """Every output that ever paid `script`, the address's scriptPubKey, spent or not.

        Complete, or ExplorerError: no outputs say that the explorer knows of none.
        """

        def question(root: Root) -> History:
            return History(read_outputs(root, address, script), root.host)

        return self.ask(question)


def get_text(get: Get, path: str, pattern: str, what: str) -> str:
    """A plain text answer that fully matches. Raises FetchError, naming `what`, for any other."""
    text = get(path).decode("ascii", "replace").strip()
    if not re.fullmatch(pattern, text):
        raise http_client.FetchError(f"answered no {what}")
    return text


def tip_height(get: Get) -> int:
    """Height of the root's best block. Raises FetchError."""
    return int(get_text(get, "/blocks/tip/height", "[0-9]{1,8}|100000000", "height"))


def _brief(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return f"answered what Esplora does not: {str(error.messages)[:200]}"
    return str(error)
