"""A pool of sources with failover: if one fails or is slow, the next is tried."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from btcpay import hooks
from btcpay.chain import sources
from btcpay.chain.question import LONGEST_S, Question
from btcpay.http.clock_skew import ClockSkew
from btcpay.settings.settings import Settings
from btcpay.values.errors import (
    BadStatus,
    ExplorerError,
    FetchError,
    OutOfQuota,
    Unreachable,
)
from storage.database import Database

log = logging.getLogger(__name__)
Source = TypeVar("Source", bound=sources.BlockSource, covariant=True)
S = TypeVar("S")
T = TypeVar("T")

PATIENCE = 6  # a source is not used any more in a run after this many failures in a row
FIRST_PAUSE_S = 0.25  # first back-off; it doubles at each failure in a row


class Answers(NamedTuple, Generic[S, T]):
    """The results of the sources that answered, and the errors of the others, by source."""

    results: dict[S, T]
    errors: dict[S, Exception]


@dataclass(eq=False)
class PoolEntry(Generic[Source]):
    """One source of a pool, with its rank and its failures so far."""

    source: Source
    rank: int = 0  # the lowest is tried first
    failures: int = 0
    failures_in_a_row: int = 0  # since its last response
    not_before_s: float = 0.0  # end of the back-off, by time.monotonic()
    required_height: int = 0  # tip that it must show before other requests; 0 if none
    is_quick: bool = True  # neither failed nor slow since its last response


class Pool(Generic[Source]):
    """Sources in order of preference. A source that failed or was slow moves to the end.

    A pool serves one run of the check, or one command. Each request runs in its own
    thread, and a response that comes too late is dropped. Thread-safe.

    `open_all` opens the sources. `on_end` is called in each request's thread before it
    ends. `pause` sleeps for a number of seconds. `clock_skew` collects the times in
    responses.
    """

    # Seconds without a response after which the next source is tried too.
    hedge_s = 2.0
    # The same for requests that are not urgent. It is also the time for the other sources after one
    # has responded without a new block, since they may know one.
    late_s = 10.0
    max_concurrent = 1
    # Time until all explorers know a transaction that these sources announce.
    lag = timedelta()

    def __init__(
        self,
        open_all: Callable[[ClockSkew], Sequence[Source]],
        on_end: Callable[[], None],
        pause: Callable[[float], None],
    ) -> None:
        self.clock_skew = ClockSkew()
        self.all = open_all(self.clock_skew)
        # Number of sources that must show a tip near ours before invoices expire.
        self.quorum = min(2, len(self.all))
        self._ranks = count(1)
        self._entries = [PoolEntry(source) for source in self.all]
        self._on_end = on_end
        self._pause = pause
        self._lock = threading.Lock()

    def allowance(self) -> sources.Allowance:
        return sources.UNLIMITED

    def end_within(self, seconds: float) -> None:
        """Makes all sources stop sending requests after this number of seconds."""
        end_s = time.monotonic() + seconds
        for source in self.all:
            source.until_s = end_s

    def close(self) -> None:
        """Stops the requests of all sources, until `end_within` allows them again."""
        self.end_within(0)

    def new_totals(self) -> Counter[tuple[str, str]]:
        """Returns the increase of each stored total since the last call of this method.

        The keys are a total's name and label.
        """
        return Counter()

    def store_outcomes(self, db: Database, settings: Settings, now: datetime) -> None:
        """Stores how the sources have responded: for metrics, or for the next pool's choice.

        By default nothing is stored.
        """

    @property
    def concurrency(self) -> int:
        """The number of `round_robin` requests that may run at the same time."""
        quick = sum(entry.is_quick for entry in self._entries)
        return max(1, min(self.max_concurrent, quick))

    def ask(self, question: Callable[[Source], T], round_robin: bool = False) -> T:
        """Calls `question` with a source, and returns the first result.

        The next source is tried after a FetchError or a ProofFailed, or in parallel
        after `hedge_s` seconds. If `round_robin` is True, each call starts with another
        quick source, and tries the next one after `late_s` seconds. Raises OutOfQuota if
        every error was a BudgetSpent (calls or time used up), else ExplorerError.
        """
        every_s = self.hedge_s
        if round_robin:
            every_s = self.late_s
        answers = self.ask_all(
            question,
            patience_s=lambda: 0.0,  # no time for more results after the first
            every_s=every_s,
            round_robin=round_robin,
        )
        first_result, *_ = answers.results.values()
        return first_result

    def ask_all(
        self,
        question: Callable[[Source], T],
        patience_s: Callable[[], float] = lambda: LONGEST_S,
        every_s: float = 0.0,
        round_robin: bool = False,
    ) -> Answers[Source, T]:
        """Calls `question` with each source, and returns the results and the errors.

        All requests start at once, or one every `every_s` seconds; after a failure the
        next one starts at once. After a result the other sources have `patience_s()`
        seconds left. A source is called once more after a temporary failure, for
        example if it had closed a kept connection. If `round_robin` is True, each call
        begins with another quick source.

        If no source gives a result, raises OutOfQuota if every error was a BudgetSpent,
        else ExplorerError.
        """
        poll: Question[PoolEntry[Source], T] = Question(
            ask=partial(self._ask_entry, question),
            every_s=every_s,
            patience_s=patience_s,
            on_answer=self._note_answer,
            on_failure=self._note_failure,
        )
        try:
            poll.run(self._in_order(round_robin))
        finally:
            for slow in poll.unfinished:
                poll.errors[slow] = Unreachable("took too long")
                self._move_to_end(slow)
        results = {entry.source: result for entry, result in poll.answers.items()}
        errors = {entry.source: error for entry, error in poll.errors.items()}
        if not results:
            raise _no_answer(errors)
        return Answers(results, errors)

    def expect(self, height: int, heights: Mapping[sources.BlockSource, int]) -> None:
        """Stops requests to each source whose tip is far below `height`.

        Such a source lacks new payments, and reports confirmed payments as unconfirmed.
        A stopped source gets requests again once it has shown a newer tip.

        `heights` has the heights of the tips that sources have shown. A tip is far below
        `height` if it is more than MAX_BLOCKS_BEHIND lower. A source that has shown no
        tip is stopped too. All sources below `height` move to the end of the order.
        """
        for entry in self._in_order():
            shown_height = heights.get(entry.source, -1)
            if shown_height >= height - sources.MAX_BLOCKS_BEHIND:
                entry.required_height = 0
            else:
                entry.required_height = height
            if shown_height < height:
                entry.rank = next(self._ranks)

    def _in_order(self, round_robin: bool = False) -> list[PoolEntry[Source]]:
        """Returns the entries in the order in which they are tried.

        If `round_robin` is True, each call puts another quick entry first.
        """
        entries = sorted(self._entries, key=lambda entry: entry.rank)
        quick = [entry for entry in entries if entry.is_quick]
        if round_robin and quick:
            first = quick[next(self._ranks) % len(quick)]
            entries.remove(first)
            entries.insert(0, first)
        return entries

    def _move_to_end(self, entry: PoolEntry[Source]) -> None:
        entry.is_quick = False
        entry.rank = next(self._ranks)

    def _ask_entry(
        self,
        question: Callable[[Source], T],
        entry: PoolEntry[Source],
    ) -> T:
        """Calls `question` with a source, after its back-off.

        Raises SourceExcluded if the source failed too often, and FetchError if it is
        behind.
        """
        try:
            if entry.failures_in_a_row >= PATIENCE:
                raise sources.SourceExcluded(f"failed {PATIENCE} times in a row")
            pause_s = entry.not_before_s - time.monotonic()
            if pause_s > 0:
                self._pause(pause_s)
            if entry.required_height:
                behind = entry.required_height - entry.source.tip_height()
                if behind > sources.MAX_BLOCKS_BEHIND:
                    raise FetchError(f"is {behind} blocks behind the others")
                entry.required_height = 0
            return question(entry.source)
        finally:
            self._on_end()

    def _note_answer(self, entry: PoolEntry[Source]) -> None:
        entry.failures_in_a_row = 0
        entry.is_quick = True

    def _note_failure(self, entry: PoolEntry[Source], error: Exception) -> bool:
        """Records a failure of a source. Returns True if it is temporary and worth a retry.

        A temporary failure starts the source's back-off.
        """
        status = 0
        if isinstance(error, BadStatus):
            status = error.status
        lacks_item = status in (400, 404)  # the source may be fine otherwise
        if not lacks_item:
            self._move_to_end(entry)
        if isinstance(error, sources.SourceExcluded | sources.BudgetSpent):
            return False
        # Logs only the host, since a URL may contain credentials.
        log.warning("source %s %s", entry.source.host, error)
        is_temporary = isinstance(error, Unreachable) or status >= 500
        with self._lock:
            entry.failures += 1
            if is_temporary:
                _begin_back_off(entry)
        return is_temporary


def _begin_back_off(entry: PoolEntry[Source]) -> None:
    """Starts the source's back-off, unless one is running.

    So failures of parallel requests during a back-off count once in a row.
    """
    now_s = time.monotonic()
    if entry.not_before_s > now_s:
        return
    entry.not_before_s = now_s + FIRST_PAUSE_S * 2**entry.failures_in_a_row
    entry.failures_in_a_row += 1


def _no_answer(errors: Mapping[Source, Exception]) -> ExplorerError:
    """Returns the error that no source has given a result, with the reason of each."""
    reasons = [f"{source.host} {error}" for source, error in errors.items()]
    message = "; ".join(reasons) or "none is known"
    if all(isinstance(error, sources.BudgetSpent) for error in errors.values()):
        return OutOfQuota(f"no source may be asked for now: {message}")
    return ExplorerError(f"no source answered: {message}")


def open_sources(
    settings: Settings,
    db: Database,
    now: Callable[[], datetime],
) -> Pool[sources.BlockSource] | None:
    """Opens the block sources of the first part (an optional plug-in) that has some.

    Returns None if no part has any; then blocks come from the explorers.
    """
    for part in hooks.of(hooks.Sources):
        pool = part.open_pool(settings, db, now)
        if pool is not None:
            return pool
    return None
