"""Sends one request to several sources in parallel threads."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import Generic, TypeVar

from btcpay.chain.sources import FAILURES
from btcpay.http.deadline import run_in_thread

S = TypeVar("S")
T = TypeVar("T")

LONGEST_S = 3600.0  # time-out of a request to several sources


class Question(Generic[S, T]):
    """A request to several sources. `answers` and `errors` have the results by source.

    `ask`: sends the request to one source. `every_s`: the seconds after which the next
    source is called too; 0 calls all at once. After a failure the next one is called at
    once. `patience_s`: called after each response; returns the seconds that the other
    sources have left. `on_answer`: called after a response. `on_failure`: called after
    a failure; returns True if the source may be called once more.
    """

    def __init__(
        self,
        ask: Callable[[S], T],
        every_s: float,
        patience_s: Callable[[], float],
        on_answer: Callable[[S], None],
        on_failure: Callable[[S, Exception], bool],
    ) -> None:
        self.answers: dict[S, T] = {}
        self.errors: dict[S, Exception] = {}
        self._ask = ask
        self._every_s = every_s
        self._patience_s = patience_s
        self._on_answer = on_answer
        self._on_failure = on_failure
        self._waiting = deque[S]()
        self._running: dict[Future[T], S] = {}
        self._next_s = 0.0
        self._end_s = time.monotonic() + LONGEST_S

    @property
    def unfinished(self) -> list[S]:
        """The sources whose request is still running."""
        return list(self._running.values())

    def run(self, sources: Iterable[S]) -> None:
        """Sends the request to the sources, in this order.

        Ends when all sources have answered or failed, or when the time is up. The
        sources whose requests still run at the end are in `unfinished`.
        """
        self._waiting.extend(sources)
        now_s = time.monotonic()
        while now_s < self._end_s:
            self._start_due(now_s)
            if not self._running:
                return
            wake_s = self._end_s
            if self._next_s > now_s:
                wake_s = min(wake_s, self._next_s)
            ended = wait(self._running, wake_s - now_s, FIRST_COMPLETED).done
            for future in ended:
                self._take(future)
            now_s = time.monotonic()

    def _start_due(self, now_s: float) -> None:
        """Starts the requests that are due. One is always due if none is running."""
        while self._waiting and (now_s >= self._next_s or not self._running):
            source = self._waiting.popleft()
            future = run_in_thread(partial(self._ask, source))
            self._running[future] = source
            self._next_s = now_s + self._every_s

    def _take(self, future: Future[T]) -> None:
        """Stores the result or the error of a request that has ended.

        After the first temporary error of a source, its request is repeated.
        """
        source = self._running.pop(future)
        earlier_error = self.errors.pop(source, None)
        try:
            self.answers[source] = future.result()
        except FAILURES as error:
            self.errors[source] = error
            self._next_s = 0.0
            is_temporary = self._on_failure(source, error)
            if is_temporary and earlier_error is None:
                self._waiting.append(source)
        else:
            self._on_answer(source)
            end_s = time.monotonic() + self._patience_s()
            self._end_s = min(self._end_s, end_s)
