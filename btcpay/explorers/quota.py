"""What each explorer may still be asked in a rolling hour, kept in the database across runs."""

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from btcpay.http_client import FetchError
from btcpay.times import from_ms, to_ms
from storage.database import Database
from storage.queries import explorers, meta

HOUR = timedelta(hours=1)
MINUTE_MS = 60_000
KEPT = timedelta(days=1)
# Counted before they are made, so many at once: a process that dies has lost no more than these.
CALLS_AT_ONCE = 20
# After a second refusal in a row, doubled at each further one: the first ends only its run.
FIRST_REST = timedelta(minutes=1)
LONGEST_REST = HOUR  # public explorers count by the hour


class BudgetSpent(FetchError):
    """This explorer's hour is spent."""


class TooDear(BudgetSpent):
    """What is left of this explorer's hour does not reach to the end of the question."""


def name_of(root: str) -> str:
    """Host, port and path of a root: what may be stored and shown."""
    parts = urlsplit(root)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


@dataclass(frozen=True)
class Purse:
    """What a run may spend, in calls.

    `per_hour` of one explorer, since a second is there for when the first fails; `left` of the one
    that has most; `swept` the part of the last hour that went to addresses that nobody waits for.
    `since_s` is the time since the run before, and `rhythm_s` how often runs come; None where there
    was none.
    """

    per_hour: int
    left: int
    swept: int = 0
    since_s: float | None = None
    rhythm_s: float | None = None

    @property
    def is_low(self) -> bool:
        """Whether half of it is spent: then no call is made that can wait."""
        return self.left < self.per_hour / 2


UNLIMITED = Purse(10**9, 10**9)


@dataclass
class Budget:
    """The calls of one process to all explorers. Thread safe; `now` reads the wall clock.

    `per_hour` is for each. Two processes share one budget: what they take is added up in the
    database.
    """

    db: Database
    per_hour: int
    now: Callable[[], datetime]
    _credit: dict[str, int] = field(default_factory=dict)
    _counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _claimed: threading.local = field(default_factory=threading.local)

    def take(self, name: str) -> None:
        """Counts one call to this explorer. Raises BudgetSpent."""
        if claimed := getattr(self._claimed, "calls", 0):
            self._claimed.calls = claimed - 1
            return
        with self._lock:
            self._fill(name, 1)
            self._credit[name] -= 1

    @contextmanager
    def claim(self, name: str, calls: int) -> Iterator[None]:
        """Sets so many calls aside for this thread: a proof that is begun is worth its end only.

        Raises TooDear when they are not there.
        """
        with self._lock:
            try:
                self._fill(name, calls)
            except BudgetSpent as error:
                raise TooDear(f"has not {calls} calls left in this hour") from error
            self._credit[name] -= calls
        self._claimed.calls = calls
        try:
            yield
        finally:
            with self._lock:
                self._credit[name] += self._claimed.calls
            self._claimed.calls = 0

    def _fill(self, name: str, calls: int) -> None:
        """Sees to it that so many calls are counted and not made yet. Raises BudgetSpent."""
        missing = calls - self._credit.setdefault(name, 0)
        if missing > 0:
            self._credit[name] += self._reserve(name, missing)

    def _reserve(self, name: str, least: int) -> int:
        now_ms = to_ms(self.now())
        minute_ms = now_ms - now_ms % MINUTE_MS
        with self.db.write():
            meta.lock(self.db)
            used = self.db.only(explorers.USED_OF_ROOT, root=name, **_last_hour(now_ms))["calls"]
            calls = min(max(CALLS_AT_ONCE, least), self.per_hour - used)
            if calls < least:
                raise BudgetSpent(f"was asked {used} times in this hour, its budget is spent")
            self.db.run(explorers.SPEND, root=name, minute_at=minute_ms, calls=calls, swept=0)
        latest_ms, counted = self._counted.get(name, (minute_ms, 0))
        self._counted[name] = minute_ms, calls + (counted if latest_ms == minute_ms else 0)
        return calls

    def give_back(self) -> None:
        """At the end of a run: what was counted and not spent; drops what no hour needs.

        What is left of an earlier minute than the latest stays counted: nobody is asked too often.
        """
        now = self.now()
        with self._lock, self.db.write():
            meta.lock(self.db)
            for name, calls in self._credit.items():
                if calls:
                    minute_ms, counted = self._counted[name]
                    unspent = min(calls, counted)
                    self.db.run(explorers.GIVE_BACK, root=name, minute_at=minute_ms, calls=unspent)
            self._credit.clear()
            self._counted.clear()
            self.db.run(explorers.FORGET, before=to_ms(now - KEPT), now=to_ms(now + HOUR))

    def purse(self, names: Sequence[str]) -> Purse:
        """What may be spent on these explorers together; those that rest have nothing."""
        now_ms = to_ms(self.now())
        rows = self.db.rows(explorers.USED, **_last_hour(now_ms))
        used = {row["root"]: row for row in rows}
        awake = [name for name in names if not self.rests_until(name)]
        left = [self.per_hour - (used[name]["calls"] if name in used else 0) for name in awake]
        minutes = [row["minute_at"] for row in self.db.rows(explorers.MINUTES, now=now_ms)]
        gaps = [(a - b) / 1000 for a, b in zip([now_ms, *minutes], minutes, strict=False)]
        return Purse(
            per_hour=self.per_hour if awake else 0,
            left=max([0, *left]),
            swept=sum(row["swept"] for row in used.values()),
            since_s=gaps[0] if gaps else None,
            rhythm_s=min(gaps) if gaps else None,
        )

    def sweep(self, name: str, calls: int) -> None:
        """Notes that so many calls of this minute are for addresses that nobody waits for."""
        now_ms = to_ms(self.now())
        minute_ms = now_ms - now_ms % MINUTE_MS
        self.db.run(explorers.SPEND, root=name, minute_at=minute_ms, calls=0, swept=calls)

    def rests_until(self, name: str) -> datetime | None:
        """When an explorer that refused us may be asked again; None when it may be now."""
        now = self.now()
        for row in self.db.rows(explorers.RESTS):
            until = from_ms(row["rests_until_at"])
            # Further ahead than any rest: the clock was wrong when it was written.
            if row["root"] == name and now < until <= now + LONGEST_REST:
                return until
        return None

    def refusals(self, name: str) -> int:
        """How often it has refused us since it last answered."""
        rows = {row["root"]: row["refusals"] for row in self.db.rows(explorers.RESTS)}
        return rows.get(name, 0)

    def refused(self, name: str, retry_after_s: int) -> None:
        """Lets an explorer rest that said "too many": longer each time, and as long as it asked.

        Jitter keeps shops that were refused together from coming back together.
        """
        before = self.refusals(name)
        doubled = FIRST_REST * 2 ** min(before - 1, 10) if before else timedelta()
        rest = max(doubled * random.uniform(0.8, 1.2), timedelta(seconds=retry_after_s))
        until = self.now() + min(LONGEST_REST, rest)
        self.db.run(explorers.REFUSED, root=name, refusals=1, rests_until_at=to_ms(until))

    def answered(self, name: str) -> None:
        """Forgets an explorer's refusals."""
        self.db.run(explorers.ANSWERED, root=name)


def _last_hour(now_ms: int) -> dict[str, int]:
    # A minute that began before the hour counts whole: calls of its last second are in the hour.
    # What a clock that was ahead by less than an hour has counted was just spent.
    hour_ms = HOUR // timedelta(milliseconds=1)
    return {"after": now_ms - hour_ms - MINUTE_MS, "now": now_ms + hour_ms}
