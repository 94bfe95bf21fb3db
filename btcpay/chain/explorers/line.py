"""Explorers in the order in which they are asked: the next when one has failed or is slow."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TypeVar

from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.quota import QuotaSpent
from btcpay.chain.sources import FAILURES, BlockSource
from btcpay.http.deadline import in_thread
from btcpay.values.errors import BadStatus, Unreachable

log = logging.getLogger(__name__)
T = TypeVar("T")

TRIES = 2  # of one question at one explorer: a kept connection may just have been closed
LONGEST_S = 3600.0  # no question lasts as long


class Line:
    """Who failed or was slow goes to its end. Thread safe.

    Each question is asked in a thread, between `before` and `after`; a late answer is dropped.
    """

    def __init__(
        self, line: Sequence[Esplora], before: Callable[[Esplora], None], after: Callable[[], None]
    ) -> None:
        self._line, self._before, self._after = list(line), before, after
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Esplora]:
        with self._lock:
            return iter(list(self._line))

    def sort(self, is_later: Callable[[Esplora], bool]) -> None:
        with self._lock:
            self._line.sort(key=is_later)

    def answers(
        self,
        question: Callable[[Esplora], T],
        errors: dict[BlockSource, Exception],
        every_s: float,
        patience_s: Callable[[], float] = float,
    ) -> Generator[tuple[Esplora, T], None, None]:
        """Answers as they come; the next explorer is asked when one has failed, or `every_s`.

        After an answer the others have `patience_s()`. `errors` gets why the others have not
        answered; after a failure that may pass each is asked twice.
        """
        tries: Counter[Esplora] = Counter()
        running: dict[Future[T], Esplora] = {}
        next_s, end_s = 0.0, time.monotonic() + LONGEST_S
        try:
            while (now_s := time.monotonic()) < end_s:
                while (now_s >= next_s or not running) and (one := self._next(tries, running)):
                    running[self._start(one, question)] = one
                    next_s = now_s + every_s
                if not running:
                    return
                left_s = min(end_s, next_s if next_s > now_s else end_s) - now_s
                for done in wait(running, left_s, FIRST_COMPLETED).done:
                    one = running.pop(done)
                    try:
                        answer = done.result()
                    except FAILURES as error:
                        tries[one] += 1 if one.failed(error) else TRIES
                        errors[one], next_s = error, 0.0
                        self._note_failure(one, error)
                    else:
                        one.succeeded()
                        tries[one] = TRIES
                        yield one, answer
                        end_s = min(end_s, time.monotonic() + patience_s())
        finally:
            for slow in running.values():
                errors[slow] = Unreachable("took too long")
                self._to_the_end(slow)

    def _next(self, tries: Counter[Esplora], running: dict[Future[T], Esplora]) -> Esplora | None:
        """Whom to ask: the least tried, then those that need no pause, in their order."""
        left = [one for one in self if not one.given_up and tries[one] < TRIES]
        left = [one for one in left if one not in running.values()]
        return min(left, key=lambda one: (tries[one], one.pause_s() > 0), default=None)

    def _start(self, one: Esplora, question: Callable[[Esplora], T]) -> Future[T]:
        def ask() -> T:
            try:
                self._before(one)
                return question(one)
            finally:
                self._after()

        return in_thread(ask)

    def _note_failure(self, explorer: Esplora, error: Exception) -> None:
        if isinstance(error, QuotaSpent):
            return
        # The host alone: a URL may carry credentials.
        log.warning("explorer %s %s", explorer.host, error)
        if not (isinstance(error, BadStatus) and error.status in (400, 404)):
            self._to_the_end(explorer)

    def _to_the_end(self, explorer: Esplora) -> None:
        self.sort(lambda one: one is explorer)
