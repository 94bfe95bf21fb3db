"""All sources of a kind; if one fails or is slow, the next is asked."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Generic, TypeVar

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
T = TypeVar("T")

PATIENCE = 6  # failures in a row, after which a run asks a source no more
FIRST_PAUSE_S = 0.25  # doubled at each failure in a row


@dataclass(eq=False)
class PoolEntry(Generic[Source]):
    """One source of a pool, with its rank there and its failures in this run."""

    source: Source
    rank: int = 0  # the lowest is asked first
    failures: int = 0
    failures_in_a_row: int = 0  # since it last answered
    not_before_s: float = 0.0  # when it may be asked again
    required_height: int = 0  # which it must show before it is asked; 0 for none
    is_quick: bool = True  # neither failed nor slow since it last answered


class Pool(Generic[Source]):
    """Sources in the order in which they are asked; one that failed or was slow goes to the end.

    Each question is asked in a thread, which calls `on_end` at its end. A late answer is dropped.
    `pause` waits for some seconds. `clock_skew` has the times in answers. Thread-safe.
    """

    # After so long without an answer the next source is asked too.
    hedge_s = 2.0
    # The same if nothing is urgent. Also, if all are asked at once and one has answered without
    # news, the others have so long, as they may know of a block.
    late_s = 10.0
    max_concurrent = 1
    # The time until every explorer knows of a transaction that these sources announce.
    lag = timedelta()

    def __init__(
        self,
        open_all: Callable[[ClockSkew], Sequence[Source]],
        on_end: Callable[[], None],
        pause: Callable[[float], None],
    ) -> None:
        self.clock_skew = ClockSkew()
        self.all = open_all(self.clock_skew)
        # So many sources must show a tip before anything ends.
        self.needed = min(2, len(self.all))
        self._ranks = count(1)
        self._entries = [PoolEntry(source) for source in self.all]
        self._on_end = on_end
        self._pause = pause
        self._lock = threading.Lock()

    def allowance(self) -> sources.Allowance:
        return sources.UNLIMITED

    def end_within(self, seconds: float) -> None:
        """Lets no source be asked after so many seconds."""
        end_s = time.monotonic() + seconds
        for source in self.all:
            source.until_s = end_s

    def close(self) -> None:
        """Ends a run: no source is asked any more."""
        self.end_within(0)

    def note(self, db: Database, settings: Settings, now: datetime) -> None:
        """Keeps what the next run needs to know. Most kinds of sources have nothing to keep."""

    @property
    def concurrency(self) -> int:
        """The number of questions that may be asked `round_robin` at a time."""
        quick = sum(entry.is_quick for entry in self._entries)
        return max(1, min(self.max_concurrent, quick))

    def ask(self, question: Callable[[Source], T], round_robin: bool = False) -> T:
        """The answer of the first source that has one.

        After a FetchError, a ProofFailed or some seconds the next source is asked. `round_robin`
        begins with another quick source each time, and is patient. Raises ExplorerError, or
        OutOfQuota if only calls or time are missing.
        """
        every_s = self.hedge_s
        if round_robin:
            every_s = self.late_s
        answers, _ = self.ask_all(question, lambda: 0.0, every_s, round_robin)
        return next(iter(answers.values()))

    def ask_all(
        self,
        question: Callable[[Source], T],
        patience_s: Callable[[], float] = lambda: LONGEST_S,
        every_s: float = 0.0,
        round_robin: bool = False,
    ) -> tuple[dict[Source, T], dict[Source, Exception]]:
        """The answers by source, and the errors of the others; raises as `ask`.

        All are asked at once, or one every `every_s`, and sooner if one has failed. After an answer
        the others have `patience_s()`. A source is asked again after a failure that may pass: a
        kept connection may just have been closed.
        """
        asked: Question[PoolEntry[Source], T] = Question(
            partial(self._ask, question),
            every_s,
            patience_s,
            self._note_answer,
            self._note_failure,
        )
        try:
            asked.run(self._in_order(round_robin))
        finally:
            for slow in asked.unfinished:
                asked.errors[slow] = Unreachable("took too long")
                self._move_to_end(slow)
        answers = {entry.source: answer for entry, answer in asked.answers.items()}
        errors = {entry.source: error for entry, error in asked.errors.items()}
        if not answers:
            raise _no_answer(errors)
        return answers, errors

    def expect(self, height: int, heights: Mapping[sources.BlockSource, int]) -> None:
        """From now on asks only sources that are at most two blocks behind, the highest first.

        `heights` has the tips shown in this run. A source that is behind lacks new payments, and
        shows some as waiting that are in blocks.
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
        """The entries in the order in which they are asked.

        `round_robin` puts another quick one first each time.
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

    def _ask(self, question: Callable[[Source], T], entry: PoolEntry[Source]) -> T:
        """Asks a source after its pause. Raises FetchError if it is behind or failed too often."""
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
        """Notes a failure; True if the question is worth asking again a little later."""
        status = 0
        if isinstance(error, BadStatus):
            status = error.status
        if status not in (400, 404):
            self._move_to_end(entry)
        if isinstance(error, sources.SourceExcluded | sources.BudgetSpent):
            return False
        # The host alone: a URL may carry credentials.
        log.warning("source %s %s", entry.source.host, error)
        may_pass = isinstance(error, Unreachable) or status >= 500
        with self._lock:
            entry.failures += 1
            if not may_pass:
                return False
            now_s = time.monotonic()
            # Counted once for all calls that were under way when the pause began.
            if entry.not_before_s <= now_s:
                entry.not_before_s = now_s + FIRST_PAUSE_S * 2**entry.failures_in_a_row
                entry.failures_in_a_row += 1
            return True


def _no_answer(errors: Mapping[Source, Exception]) -> ExplorerError:
    reasons = [f"{source.host} {error}" for source, error in errors.items()]
    message = "; ".join(reasons) or "none is known"
    if all(isinstance(error, sources.BudgetSpent) for error in errors.values()):
        return OutOfQuota(f"no source may be asked for now: {message}")
    return ExplorerError(f"no source answered: {message}")


def open_sources(
    settings: Settings, db: Database, now: Callable[[], datetime]
) -> Pool[sources.BlockSource] | None:
    """The first pool that a part opens for a run; None if the explorers show the blocks."""
    for part in hooks.of(hooks.Sources):
        pool = part.open_pool(settings, db, now)
        if pool is not None:
            return pool
    return None
