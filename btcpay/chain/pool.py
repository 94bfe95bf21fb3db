"""All sources of a kind; when one fails or is slow, the next is asked."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Generic, TypeVar

from btcpay import hooks
from btcpay.chain import sources
from btcpay.http.clock_skew import ClockSkew
from btcpay.http.deadline import run_in_thread
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

LONGEST_S = 3600.0  # every question ends before
PATIENCE = 6  # failures in a row, after which a run asks it no more
FIRST_PAUSE_S = 0.25  # doubled at each failure in a row


@dataclass(eq=False)
class PoolEntry(Generic[Source]):
    """A source's place in the line, with its failures in this run."""

    one: Source
    turn: int = 0  # the lowest is asked first
    failed: int = 0
    in_a_row: int = 0  # failures since it last answered
    not_before_s: float = 0.0
    must_reach: int = 0  # the height that it must show before it is asked; 0 for none
    is_quick: bool = True  # neither failed nor slow since it last answered


class Pool(Generic[Source]):
    """Sources in the order in which they are asked; one that failed or was slow goes to the end.

    Each question is asked in a thread, and `after` called at its end; a late answer is dropped.
    `pause` waits for some seconds, `clock_skew` has the times in answers. Thread safe.
    """

    hedge_s = 2.0  # without an answer; then the next source is asked too
    # The same where nothing is urgent; and after an answer without news, when all are asked at
    # once, as the others may know of a block.
    late_s = 10.0
    max_concurrent = 1
    lag = (
        timedelta()
    )  # the time until every explorer knows of a transaction that these announce

    def __init__(
        self,
        open_all: Callable[[ClockSkew], Sequence[Source]],
        after: Callable[[], None],
        pause: Callable[[float], None],
    ) -> None:
        self.clock_skew = ClockSkew()
        self.all = open_all(self.clock_skew)
        self.needed = min(
            2, len(self.all)
        )  # sources that must show a tip before anything ends
        self._turns = count(1)
        self._line = [PoolEntry(one) for one in self.all]
        self._after = after
        self._pause = pause
        self._lock = threading.Lock()

    def allowance(self) -> sources.Allowance:
        return sources.UNLIMITED

    def end_within(self, seconds: float) -> None:
        for one in self.all:
            one.until_s = time.monotonic() + seconds

    def close(self) -> None:
        """Ends a run: no source is asked any more."""
        self.end_within(0)

    def note(self, db: Database, settings: Settings, now: datetime) -> None:
        """After a run: keeps its news for the next one. Most kinds have nothing to keep."""

    @property
    def concurrency(self) -> int:
        """The number of questions that may be asked `by_turns` at a time."""
        return max(
            1, min(self.max_concurrent, sum(place.is_quick for place in self._places()))
        )

    def ask(self, question: Callable[[Source], T], round_robin: bool = False) -> T:
        """The answer of the first source that has one.

        FetchError, ProofFailed and slowness turn the question to the next one. `by_turns` begins
        with another quick source each time, and is patient. Raises ExplorerError, or OutOfQuota if
        only calls or time are missing.
        """
        every_s = self.late_s if round_robin else self.hedge_s
        found, _ = self.ask_all(question, lambda: 0.0, every_s, round_robin)
        return next(iter(found.values()))

    def ask_all(
        self,
        question: Callable[[Source], T],
        patience_s: Callable[[], float] = lambda: LONGEST_S,
        every_s: float = 0.0,
        round_robin: bool = False,
    ) -> tuple[dict[Source, T], dict[Source, Exception]]:
        """The answers by source, and the errors of the others; raises as `ask`.

        All are asked at once, or one every `every_s`, sooner when one has failed. After an answer
        the others have `patience_s()`. A source is asked again after a failure that may pass: a
        kept connection may just have been closed.
        """
        found: dict[Source, T] = {}
        errors: dict[Source, Exception] = {}
        left = deque(self._places(round_robin))
        running = dict[Future[T], PoolEntry[Source]]()
        next_s = 0.0
        end_s = time.monotonic() + LONGEST_S
        try:
            while (now_s := time.monotonic()) < end_s:
                while left and (now_s >= next_s or not running):
                    place = left.popleft()
                    running[run_in_thread(partial(self._ask, place, question))] = place
                    next_s = now_s + every_s
                if not running:
                    break
                left_s = min(end_s, next_s if next_s > now_s else end_s) - now_s
                for done in wait(running, left_s, FIRST_COMPLETED).done:
                    place = running.pop(done)
                    before = errors.pop(place.one, None)
                    try:
                        found[place.one] = done.result()
                    except sources.FAILURES as error:
                        errors[place.one], next_s = error, 0.0
                        if self._may_pass(place, error) and before is None:
                            left.append(place)
                    else:
                        place.in_a_row = 0
                        place.is_quick = True
                        end_s = min(end_s, time.monotonic() + patience_s())
        finally:
            for slow in running.values():
                errors[slow.one] = Unreachable("took too long")
                self._to_the_end(slow)
        if not found:
            whys = [f"{one.host} {error}" for one, error in errors.items()]
            said = "; ".join(whys) or "none is known"
            if all(isinstance(error, sources.BudgetSpent) for error in errors.values()):
                raise OutOfQuota(f"no source may be asked for now: {said}")
            raise ExplorerError(f"no source answered: {said}")
        return found, errors

    def expect(self, height: int, heights: Mapping[sources.BlockSource, int]) -> None:
        """From now on asks only sources that are at most two blocks behind, the highest first.

        `heights` has the tips shown in this run. A source that is behind lacks new payments, and
        still shows some that are in blocks.
        """
        for place in self._places():
            is_near = heights.get(place.one, -1) >= height - sources.MAX_BLOCKS_BEHIND
            place.must_reach = 0 if is_near else height
            if heights.get(place.one, -1) < height:
                place.turn = next(self._turns)

    def _places(self, round_robin: bool = False) -> list[PoolEntry[Source]]:
        places = sorted(self._line, key=lambda place: place.turn)
        quick = [place for place in places if place.is_quick]
        if round_robin and quick:
            first = quick[next(self._turns) % len(quick)]
            places.sort(key=lambda place: place is not first)
        return places

    def _to_the_end(self, place: PoolEntry[Source]) -> None:
        place.is_quick = False
        place.turn = next(self._turns)

    def _ask(self, place: PoolEntry[Source], question: Callable[[Source], T]) -> T:
        """Asks a source after its pause. Raises FetchError if it is behind or failed too often."""
        try:
            if place.in_a_row >= PATIENCE:
                raise sources.SourceExcluded(f"failed {PATIENCE} times in a row")
            if (pause_s := place.not_before_s - time.monotonic()) > 0:
                self._pause(pause_s)
            if place.must_reach:
                behind = place.must_reach - place.one.tip_height()
                if behind > sources.MAX_BLOCKS_BEHIND:
                    raise FetchError(f"is {behind} blocks behind the others")
                place.must_reach = 0
            return question(place.one)
        finally:
            self._after()

    def _may_pass(self, place: PoolEntry[Source], error: Exception) -> bool:
        """Notes a failure; True if the question is worth asking again a little later."""
        status = error.status if isinstance(error, BadStatus) else None
        if status not in (400, 404):
            self._to_the_end(place)
        if isinstance(error, sources.SourceExcluded | sources.BudgetSpent):
            return False
        # The host alone: a URL may carry credentials.
        log.warning("source %s %s", place.one.host, error)
        with self._lock:
            place.failed += 1
            if not (isinstance(error, Unreachable) or (status and status >= 500)):
                return False
            # Counted once for all calls that were under way when the pause began.
            if place.not_before_s <= time.monotonic():
                place.not_before_s = (
                    time.monotonic() + FIRST_PAUSE_S * 2**place.in_a_row
                )
                place.in_a_row += 1
            return True


def open_sources(
    settings: Settings, db: Database, now: Callable[[], datetime]
) -> Pool[sources.BlockSource] | None:
    """The first pool that a part's `source` opens for a run; None: the explorers show blocks."""
    opened = (part.open_pool(settings, db, now) for part in hooks.of(hooks.Sources))
    return next(filter(None, opened), None)
